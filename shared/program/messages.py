"""Texts in the messages of a program: its name, the reason for its end, and a missing extra."""

import sys
from pathlib import Path
from typing import NoReturn

from ..text import plain


def program_name() -> str:
    """Return the name that the user called: a console script, or `python -m NAME`."""
    program = Path(sys.argv[0])
    spec = sys.modules["__main__"].__spec__
    if spec is not None and program.suffix == ".py":
        return f"python -m {spec.name.removesuffix('.__main__')}"
    return program.name.removesuffix(".exe")


def exit_with_error(program: str, reason: str) -> NoReturn:
    """End the program with one line on stderr and exit code 2."""
    sys.stderr.write(f"{program}: {plain('; '.join(reason.splitlines()))}\n")
    sys.exit(2)


def missing_extra_message(extra: str) -> str:
    """Return a message that an extra is missing, with the command that adds it."""
    from .installation import this_installation

    return f"this needs the extra {extra!r}: {this_installation().install_command(extra)}"
