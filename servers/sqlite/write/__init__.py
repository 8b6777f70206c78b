"""Changes databases by statements and imports, previews these changes, and makes backups."""
