"""Extracts the main content of a page, from its lines, their features, and a decision forest that judges them."""
