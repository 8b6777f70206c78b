"""Connections to a database, and the limits and permissions of statements."""
