"""The name with which the bundle's program was called."""

import sys
from pathlib import Path

_SERVERS = __package__.rpartition(".")[0]


def program_name() -> str:
    """Return the name that the user called: the console script, which pipx puts on the PATH, or `python -m
    servers`."""
    return "mcp-server-bundle" if Path(sys.argv[0]).stem == "mcp-server-bundle" else f"python -m {_SERVERS}"
