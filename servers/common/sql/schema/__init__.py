"""What is in a database: its tables, what they hold, how they hang together, and how a query would be run."""
