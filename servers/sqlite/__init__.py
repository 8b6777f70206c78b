"""The MCP server of SQLite databases: it reads them, and changes them if the operator allows it."""
