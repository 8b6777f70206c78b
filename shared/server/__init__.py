"""From plain functions to a server: registries, handlers, and the loop that serves a peer."""
