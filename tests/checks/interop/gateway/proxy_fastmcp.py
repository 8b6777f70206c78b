"""FastMCP's proxy over stdio to the server at a URL, as its documentation has it.

python proxy_fastmcp.py URL

Runs in an environment of its own, where nothing of this project is but this file.
"""

import sys

from fastmcp.server import create_proxy

if __name__ == "__main__":
    create_proxy(sys.argv[1], name="proxy").run("stdio", show_banner=False, log_level="ERROR")
