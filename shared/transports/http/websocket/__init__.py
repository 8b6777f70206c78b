"""WebSockets, server side."""
