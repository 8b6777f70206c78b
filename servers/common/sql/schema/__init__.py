"""The schema of a database: its tables, their contents and relations."""
