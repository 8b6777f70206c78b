"""The MCP server for SQLite databases: reads them, and changes them if the operator allows it."""
