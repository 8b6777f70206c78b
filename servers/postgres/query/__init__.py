"""Queries of PostgreSQL databases: their rows and their plans."""
