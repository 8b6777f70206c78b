"""Is a file with a token fit to be one?"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from .findings import Finding, fault

__all__ = ["check_token_file"]


def check_token_file(path: Path, where: str) -> Iterator[Finding]:
    """Looks whether it is there, holds something, and is nobody else's business. What it holds is told to nobody."""
    make = f"make one: python -c 'import secrets; print(secrets.token_urlsafe())' > '{path}' && chmod 600 '{path}'"
    try:
        mode = path.stat().st_mode
        # Who opens a pipe waits for another program, and takes from it what the server should have.
        empty = stat.S_ISREG(mode) and not path.read_bytes().strip()
    except FileNotFoundError:
        yield fault(where, f"the token file {path} does not exist", make)
        return
    except OSError as error:
        yield fault(where, f"the token file {path} can't be read: {error.strerror}", make)
        return
    if empty:
        yield fault(where, f"the token file {path} is empty", make)
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        fix = f"chmod 600 '{path}', and make a new token if others use this machine"
        yield fault(where, f"the token file {path} is open to others on this machine", fix)
