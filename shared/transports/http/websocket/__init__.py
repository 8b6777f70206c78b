"""The server side of WebSockets."""
