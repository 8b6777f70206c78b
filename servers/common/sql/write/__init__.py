"""What changes a database: statements, imports, and the questions that come before; and backups."""
