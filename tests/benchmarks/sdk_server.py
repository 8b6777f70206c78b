"""The peer: `read_text_file` on the official SDK, as its documentation would have it written."""

import sys
from pathlib import Path

from mcp.server import MCPServer

server = MCPServer("files")
root = Path(sys.argv[1])


@server.tool()
def read_text_file(path: str) -> str:
    """Read a text file."""
    return (root / path).read_text()


if __name__ == "__main__":
    server.run()
