"""What the servers of SQL databases have in common: all but the engine, which each has of its own."""
