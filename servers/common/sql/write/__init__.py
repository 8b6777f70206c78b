"""Changes to a database: statements, imports, confirmation, and backups."""
