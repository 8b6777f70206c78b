"""Servers in front of other servers: several servers joined as one, and a bridge to third-party servers."""
