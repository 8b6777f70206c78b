"""Open databases, and the limits and permissions of statements."""
