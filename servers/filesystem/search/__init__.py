"""Directory listings, and searches for files by name and content."""
