"""The name with which the bundle's program was started, for messages."""

import sys
from pathlib import Path

_SERVERS = __package__.rpartition(".")[0]


def program_name() -> str:
    """Return what the user types to start the program: the name of the console script, or `python -m servers`."""
    return "mcp-server-bundle" if Path(sys.argv[0]).stem == "mcp-server-bundle" else f"python -m {_SERVERS}"
