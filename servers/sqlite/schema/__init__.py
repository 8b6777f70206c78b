"""Reads and describes the schema of an SQLite database."""
