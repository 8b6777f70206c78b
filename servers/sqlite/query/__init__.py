"""Queries, and their rows as a client gets them."""
