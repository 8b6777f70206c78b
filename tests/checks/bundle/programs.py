"""Programs such as installers, run to their end."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.raw import BARE

INSTALLING = 600  # seconds
# The access of a machine to packages does not belong to its users.
REACHING = ("PIP_", "UV_", "SSL_CERT_", "REQUESTS_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")

UNCOMPILED = {"PIP_NO_COMPILE": "0"}
"""Has pip compile nothing, which Python does when it imports: of an option that begins with "no", 0 is the yes."""


def fresh(home: Path, *folders: Path) -> dict[str, str]:
    """Returns the environment of a new user: an empty home directory, and a minimal PATH with these folders."""
    path = os.pathsep.join([*map(str, folders), "/usr/bin", "/bin"])
    reaching = {name: value for name, value in os.environ.items() if name.upper().startswith(REACHING)}
    return {**reaching, **UNCOMPILED, "HOME": str(home), "PATH": path}


def run(command: list[str], folder: Path, env: Mapping[str, str] = BARE) -> str:
    """Runs a program that must succeed; returns its output."""
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=INSTALLING)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
