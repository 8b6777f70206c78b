"""A filesystem server whose resources announce their own changes."""
