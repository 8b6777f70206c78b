"""Changes of a database: statements, imports, confirmation, and backups."""
