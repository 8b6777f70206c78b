"""Reads of files: text, parts of it, media."""
