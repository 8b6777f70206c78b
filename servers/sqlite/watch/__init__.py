"""Watches of SQLite databases, for changes by this server and by other processes."""
