"""Undo of changes."""
