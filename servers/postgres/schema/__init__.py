"""The schema of a PostgreSQL database: its tables, their columns and relations."""
