"""The tasks of a client: those of its server, and those that it runs for the server."""
