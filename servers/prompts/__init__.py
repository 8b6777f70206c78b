"""The MCP server for prompt libraries: folders of Markdown files, each of which is offered as a prompt and a
skill."""
