"""Stores that the replicas of one server share."""
