"""HTTP: Streamable HTTP, HTTP+SSE and WebSockets behind one listener, and the client side of them."""
