"""Messages as bytes, and bytes as messages."""
