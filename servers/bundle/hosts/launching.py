"""The command that starts a server, as a client's configuration needs it."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from servers.catalog import Entry
from shared.program.installation import this_installation

# The variables that uv may need in order to download packages. A client that was not started from a shell does not
# pass them on.
_UV_VARIABLES = (
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "UV_SYSTEM_CERTS", "UV_NATIVE_TLS"),
    *("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS"),
)


def launch_command(entry: Entry, arguments: Sequence[str] = ()) -> list[str]:
    """Return the absolute path of the program, and its arguments. It works after uv's cache was emptied.

    If uvx runs this copy of the bundle, it is in that cache. Then the command runs uvx with the same specification of
    the package. Raises ValueError if the specification is unknown, or if uv is missing.
    """
    installation = this_installation()
    if not installation.is_ephemeral:
        return local_command(entry, arguments)
    program = [entry.script] if entry.script else ["python", "-P", "-m", entry.module]
    try:
        specification = installation.specification(*([entry.extra] if entry.extra else []))
        # uv sets the variable UV to its own path for the programs that it runs. If there is no uvx next to it, `uv
        # tool run` does the same.
        uv = os.environ.get("UV") or shutil.which("uv")
        if uv is None:
            raise ValueError("uvx is not on the PATH")
        uvx = shutil.which("uvx", path=str(Path(uv).parent))
        return [*([uvx] if uvx else [uv, "tool", "run"]), "--from", specification, *program, *arguments]
    except ValueError as error:
        reason = f"this copy is in uv's cache, which may be emptied at any time, and {error}"
        raise ValueError(f"{reason}: install it with `uv tool install`, and run that copy") from None


def launch_environment() -> Mapping[str, str]:
    """Return the environment variables that the launch command needs, except those that contain credentials."""
    if not this_installation().is_ephemeral:
        return {}
    return {name: value for name in _UV_VARIABLES if (value := os.environ.get(name)) and "@" not in value}


def local_command(entry: Entry, arguments: Sequence[str] = ()) -> list[str]:
    """Return the absolute path of the server's program in this installation, and its arguments.

    The path is absolute because clients may have a minimal PATH. If there is no console script, Python runs the
    module with `-P`, so that a folder called `servers` in the working directory does not shadow the bundle's package.
    """
    here = Path(sys.executable).parent
    for name in (entry.script, f"{entry.script}.exe") if entry.script else ():
        if (here / name).is_file():
            return [str(here / name), *arguments]
    return [sys.executable, "-P", "-m", entry.module, *arguments]
