"""The connections to a database, and what a statement may do there and for how long."""
