"""How the commands of the bundle were called."""

import sys
from pathlib import Path

__all__ = ["program"]


def program() -> str:
    """What the user called: the console script, which pipx puts on the PATH, or `python -m servers`."""
    return "mcp-server-bundle" if Path(sys.argv[0]).stem == "mcp-server-bundle" else "python -m servers"
