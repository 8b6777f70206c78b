"""Extraction of the main content of a page: its lines, the evidence in them, and a forest that judges it."""
