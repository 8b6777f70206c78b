"""Readers of HTML pages: their content, sections, links, and metadata."""
