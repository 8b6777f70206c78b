"""Changes to a database: statements, imports, and the confirmation before them."""
