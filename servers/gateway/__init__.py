"""A server in front of others: several servers joined as one, and a bridge to third-party servers."""
