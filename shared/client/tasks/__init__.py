"""The tasks of a client: tasks that run at its server, and tasks that it runs for the server."""
