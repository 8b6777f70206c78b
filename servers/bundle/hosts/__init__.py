"""Desktop hosts: how each is told of a server, and how its configuration is changed."""
