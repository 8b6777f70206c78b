"""Libraries in remote git repositories."""
