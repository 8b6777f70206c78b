"""Reading files: text, parts of it, media."""
