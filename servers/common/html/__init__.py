"""Reduces the HTML of pages and documents to its visible part, and writes it as Markdown or as plain text."""
