"""The MCP server for existing PostgreSQL databases, which it reads and changes over one connection per call."""
