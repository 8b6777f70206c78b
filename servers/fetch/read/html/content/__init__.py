"""What of a page is its content: its lines, the evidence in them, and two forests that judge it."""
