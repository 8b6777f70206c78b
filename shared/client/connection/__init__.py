"""A session on a transport: its opening, heartbeat and reconnection, and the changes that the server reports."""
