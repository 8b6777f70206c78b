"""Reports the health of a PostgreSQL server and its databases."""
