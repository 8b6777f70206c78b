"""HTML of pages and documents: what a reader sees of it, written as Markdown or as plain text."""
