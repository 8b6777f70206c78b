"""What a client is shown of a page, and in which pieces."""
