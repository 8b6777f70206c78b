"""Telling of changes while somebody wants to know."""
