"""Stores that the replicas of one server share in Redis, on one machine or on many."""
