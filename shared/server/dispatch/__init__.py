"""The path from a peer's messages to handlers, and back: connections, calls in progress, and their contexts."""
