"""The client side of HTTP: Streamable HTTP, and HTTP+SSE."""
