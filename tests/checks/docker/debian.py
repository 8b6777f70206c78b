"""Programs that tests need from Debian."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.checks.docker.images import is_debian_root


def find_program(name: str, package: str, folder: Path) -> str:
    """The program. Where there is none, its package is unpacked into `folder` as root on Debian under `CI=true`; else
    the test is skipped."""
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    if found is not None:
        return found
    if not (is_debian_root and os.environ.get("CI") == "true"):
        pytest.skip(f"needs {name} (Debian: apt-get install {package})")
    # Not installed, which could start it as a service of this machine.
    download = f"apt-get download {package}"
    script = f"({download} || {{ apt-get update && {download}; }}) && dpkg -x {package}_*.deb ."
    done = subprocess.run(["sh", "-c", script], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = shutil.which(name, path=f"{folder}/usr/bin:{folder}/usr/sbin")
    assert found is not None
    return found
