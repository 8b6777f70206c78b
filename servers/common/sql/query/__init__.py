"""Queries, their rows in an answer, and the file formats of exports."""
