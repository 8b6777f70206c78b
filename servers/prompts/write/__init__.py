"""Writing of files into libraries."""
