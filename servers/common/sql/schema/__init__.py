"""Describes the schema of a database as data and as text."""
