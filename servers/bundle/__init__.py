"""The bundle's program, `mcp-server-bundle`, and its commands."""
