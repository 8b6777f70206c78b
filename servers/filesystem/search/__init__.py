"""Listing directories, and finding files by name and by content."""
