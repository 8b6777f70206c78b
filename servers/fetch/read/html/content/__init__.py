"""What of a page is its content: its lines, the evidence in them, and a forest that judges it."""
