"""What is in a PostgreSQL database: its tables, what they hold, and how they hang together."""
