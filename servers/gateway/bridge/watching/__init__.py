"""Subscriptions through a bridge, and the resources that it watches at the server for them."""
