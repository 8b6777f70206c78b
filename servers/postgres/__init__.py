"""The MCP server for existing PostgreSQL databases, which are read and changed over one connection per call."""
