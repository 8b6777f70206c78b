"""The command that starts a server, as a host has to know it."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from servers.catalog import Entry
from shared.program.installation import this_installation

# How uv reaches packages, of which a host that was not started from a shell hands on nothing.
_OF_UV = (
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "UV_SYSTEM_CERTS", "UV_NATIVE_TLS"),
    *("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS"),
)


def launch_command(entry: Entry, arguments: Sequence[str] = ()) -> list[str]:
    """The program, by its absolute path, and its arguments, such that it is there tomorrow as well.

    A copy that uvx runs lies in uv's cache, which others empty, so there it is uvx with what it was given. Raises
    ValueError where nobody knows what that was.
    """
    copy = this_installation()
    if not copy.is_passing:
        return local_command(entry, arguments)
    program = [entry.script] if entry.script else ["python", "-P", "-m", entry.module]
    try:
        given = copy.specification(*([entry.extra] if entry.extra else []))
        # uv tells the programs it runs where it is itself; without uvx beside it, it does the same.
        uv = os.environ.get("UV") or shutil.which("uv")
        beside = shutil.which("uvx", path=str(Path(uv).parent)) if uv else None
        if beside is None and uv is None:
            raise ValueError("there is no uvx on the PATH")
        return [*([beside] if beside else [str(uv), "tool", "run"]), "--from", given, *program, *arguments]
    except ValueError as error:
        reason = f"this copy is in uv's cache, which is emptied now and then, and {error}"
        raise ValueError(f"{reason}: install it by `uv tool install`, and call that one") from None


def launch_environment() -> Mapping[str, str]:
    """The variables that such a command needs besides; none that holds a password."""
    if not this_installation().is_passing:
        return {}
    return {name: value for name in _OF_UV if (value := os.environ.get(name)) and "@" not in value}


def local_command(entry: Entry, arguments: Sequence[str] = ()) -> list[str]:
    """The program of this very copy, by its absolute path, and its arguments.

    Hosts start with a bare PATH, and a folder called `servers` in their working directory must shadow nothing. So it
    is the console script of this installation; where there is none, its Python with the module, and `-P`.
    """
    here = Path(sys.executable).parent
    for name in (entry.script, f"{entry.script}.exe") if entry.script else ():
        if (here / name).is_file():
            return [str(here / name), *arguments]
    return [sys.executable, "-P", "-m", entry.module, *arguments]
