"""Taking changes back."""
