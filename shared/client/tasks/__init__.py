"""Tasks, as a client has them: those of the server, and those that it runs for the server."""
