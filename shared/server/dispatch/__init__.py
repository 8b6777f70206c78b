"""The path from a peer's messages to an author's functions, and back: calls, their connection and context."""
