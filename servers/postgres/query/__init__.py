"""Queries of PostgreSQL databases: their rows, and how they would be run."""
