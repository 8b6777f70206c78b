"""Notice of changes, by this server or by other processes."""
