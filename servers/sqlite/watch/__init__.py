"""Watches SQLite databases for changes by this program and by other processes."""
