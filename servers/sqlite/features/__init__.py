"""What clients see of SQLite alone."""
