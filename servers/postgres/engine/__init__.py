"""Connections to a database, and the limits and rights of statements."""
