"""From the messages of a peer to the functions of an author, and back: calls, their connection and context."""
