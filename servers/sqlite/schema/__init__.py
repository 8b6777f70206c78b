"""The schema of a SQLite database: its tables, their contents and relations."""
