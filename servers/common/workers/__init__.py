"""Worker processes of a server, for work that can't be trusted or interrupted."""
