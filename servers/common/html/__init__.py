"""HTML of pages and documents: the visible part, written as Markdown or as plain text."""
