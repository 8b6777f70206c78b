"""Watches PostgreSQL databases, and reports changes to subscribers."""
