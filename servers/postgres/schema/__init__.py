"""The schema of a PostgreSQL database: its tables, their contents and relations."""
