"""How a PostgreSQL server and its databases are doing."""
