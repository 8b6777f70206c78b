"""The skills of a server, for a host."""
