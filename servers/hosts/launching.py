"""The command that starts a server, as a host has to know it."""

import sys
from collections.abc import Sequence
from pathlib import Path

from ..catalog import Entry

__all__ = ["launch_command"]


def launch_command(entry: Entry, arguments: Sequence[str] = ()) -> list[str]:
    """The program, by its absolute path, and its arguments.

    Hosts start with a bare PATH, and a folder called `servers` in their working directory must shadow nothing. So it
    is the console script of this installation; where there is none, its Python with the module, and `-P`.
    """
    here = Path(sys.executable).parent
    for name in (entry.script, f"{entry.script}.exe") if entry.script else ():
        if (here / name).is_file():
            return [str(here / name), *arguments]
    return [sys.executable, "-P", "-m", entry.module, *arguments]
