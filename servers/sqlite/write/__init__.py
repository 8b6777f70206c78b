"""Changes to a database (statements, imports, and previews of both), and backups."""
