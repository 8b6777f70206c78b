"""What a program of a Python environment is made of."""

import re
from pathlib import Path

__all__ = ["environment_of", "interpreter_of"]

_HEAD = 4_096
# Where the path of the interpreter is too long or has spaces, pip and uv have the shell start it, in the second line.
_SHEBANG = re.compile(rb"#!\s*(/[^\r\n]*?)(?: -[^\r\n]*)?\r?\n(?:'''exec' (?:\"([^\"\n]+)\"|'([^'\n]+)'|(\S+)) )?")


def interpreter_of(script: Path) -> Path | None:
    """The Python that a console script starts; None where it is no script, or one of another kind."""
    try:
        if not script.is_file():
            return None
        with script.open("rb") as file:
            found = _SHEBANG.match(file.read(_HEAD))
    except OSError:
        return None
    if found is None:
        return None
    path = Path((found[2] or found[3] or found[4] or found[1]).decode("utf-8", "surrogateescape"))
    return path if path.name.startswith(("python", "pypy")) else None


def environment_of(program: Path) -> Path:
    """The directory of the environment that a program is in: without links, which lead out of it."""
    return program.absolute().parent
