"""The program of the bundle, `mcp-server-bundle`, and its commands."""
