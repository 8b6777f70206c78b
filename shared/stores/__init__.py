"""Stores of state that the replicas of one server share: in the memory of one process, or in Redis."""
