"""Connections to another server that this program relays: its URL, the user's login there, and the comparison of its
tools with those that the user has accepted."""
