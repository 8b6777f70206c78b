"""Detection of changes, and notification about them."""
