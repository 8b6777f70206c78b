"""The databases, opened, and what a statement may do there and for how long."""
