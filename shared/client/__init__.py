"""A client for MCP servers: small, and for both eras."""
