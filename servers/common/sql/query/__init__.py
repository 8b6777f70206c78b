"""Queries, their rows in a result, and the file formats of exports."""
