"""Detection of changes to files, and notifications about them."""
