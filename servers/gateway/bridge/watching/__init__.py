"""Subscriptions of clients at a bridge, and the subscriptions that the bridge makes at the server for them."""
