"""The MCP server of PostgreSQL databases that exist already, read and changed over one connection per call."""
