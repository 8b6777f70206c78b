"""Subscriptions of clients at a bridge, and the bridge's own subscriptions at the server that they need."""
