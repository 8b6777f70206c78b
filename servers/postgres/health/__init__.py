"""Health of a PostgreSQL server and its databases."""
