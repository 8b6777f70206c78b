"""Watches SQLite databases for changes by this server and by other processes."""
