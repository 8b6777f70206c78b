"""Detects changes to files, and notifies clients of them."""
