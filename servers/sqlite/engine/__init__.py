"""Open databases, and the limits and rights of statements."""
