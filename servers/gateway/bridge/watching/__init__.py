"""Subscriptions through a bridge, and what it watches at the server for them."""
