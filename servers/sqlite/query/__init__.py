"""Queries, and their rows in the form for clients."""
