"""The peer: `read_text_file` on the official SDK, as its documentation would have it written.

python -m tests.checks.benchmarks.sdk_server FOLDER [PORT]

With a port it serves HTTP, in the fastest way it offers: plain JSON answers and no line of log for every request.
"""

import sys
from pathlib import Path

from mcp.server import MCPServer

server = MCPServer("files", log_level="WARNING")
root = Path(sys.argv[1])


@server.tool()
def read_text_file(path: str) -> str:
    """Read a text file."""
    return (root / path).read_text()


if __name__ == "__main__":
    if len(sys.argv) > 2:
        server.run("streamable-http", port=int(sys.argv[2]), json_response=True, max_sessions=None)
    else:
        server.run()
