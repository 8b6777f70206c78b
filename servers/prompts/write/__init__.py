"""Writing into libraries."""
