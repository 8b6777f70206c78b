"""The schema of an SQLite database: its tables, their contents and relations."""
