"""Reads files: whole texts, parts of texts, and media."""
