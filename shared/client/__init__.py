"""A client for MCP servers of both eras, over every transport."""
