"""What turns plain functions into a server: registries, handlers, and the loop that serves a peer."""
