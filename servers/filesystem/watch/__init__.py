"""Noticing changes, and telling of them."""
