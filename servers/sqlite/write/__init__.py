"""Changes of a database: statements, imports, their preview, and backups."""
