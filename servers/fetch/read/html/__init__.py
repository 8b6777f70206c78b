"""Readers of HTML pages: their content, their sections, their links, and their metadata."""
