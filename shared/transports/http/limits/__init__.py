"""Limits of a listener for senders, sessions and endpoints."""
