"""Lists of directories, and searches for files by name and by content."""
