"""What is known of a command before anything is loaded: how it was called, and how it refuses."""

import sys
from pathlib import Path
from typing import NoReturn

__all__ = ["plain", "program", "refuse"]


def program() -> str:
    """What the user called: the console script, which pipx puts on the PATH, or `python -m servers`."""
    return "mcp-server-bundle" if Path(sys.argv[0]).stem == "mcp-server-bundle" else "python -m servers"


def plain(text: str) -> str:
    """`text` without what would move the cursor or colour the terminal: it is data, maybe of somebody else."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def refuse(program: str, reason: str) -> NoReturn:
    """Ends the program with one line on stderr and exit code 2."""
    print(f"{program}: {plain('; '.join(reason.splitlines()))}", file=sys.stderr)  # noqa: T201 - it is the output
    sys.exit(2)
