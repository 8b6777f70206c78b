"""Desktop hosts: how each configures a server, and how to change its configuration."""
