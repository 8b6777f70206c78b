"""Watches of PostgreSQL databases, which report changes to subscribers."""
