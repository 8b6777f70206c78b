"""Libraries in git repositories of others."""
