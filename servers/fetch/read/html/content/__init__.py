"""Extraction of the main content of a page: its lines, their features, and a decision forest that judges them."""
