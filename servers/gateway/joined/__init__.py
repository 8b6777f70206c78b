"""The gateway: one server that joins several servers of this process."""
