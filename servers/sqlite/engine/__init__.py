"""Opens databases, and enforces the limits and permissions of statements."""
