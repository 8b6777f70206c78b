"""PyPI packages that tests need in a separate environment: pinned in a file, installed when first needed."""

import shutil
import subprocess
import sys
from pathlib import Path

from filelock import FileLock

from tests.npm import Unavailable

ROOT = Path(__file__).resolve().parents[1]
INSTALL_SECONDS = 300
INSTALLERS = ROOT / "tests/checks/bundle/requirements-installers.txt"


def pinned(file: Path) -> dict[str, str]:
    """Returns the packages in `file`, with their versions."""
    return dict(line.split("==") for line in file.read_text().splitlines())


def require(name: str, file: Path) -> Path:
    """Returns the Python of the environment `name` with the packages of `file`, which is built once.

    It stays, in a folder that git ignores, until the file changes; a process waits while another builds it. Raises
    Unavailable."""
    folder = ROOT / f".venv-{name}"
    built = folder / "requirements.txt"  # written last: without it, the build was interrupted
    python = folder / "bin" / "python"
    with FileLock(f"{folder}.lock"):
        if not built.exists() or built.read_text() != file.read_text():
            venv = [sys.executable, "-m", "venv", "--clear", "--without-pip"]
            _run([*venv, str(folder)], f"an environment for {name}")
            # The file pins all of them, and Python compiles what it imports.
            command = [*_install(python, by_uv=file != INSTALLERS), "--quiet", "--no-deps", "-r", str(file)]
            _run(command, f"the packages of {file.name}")
            shutil.copyfile(file, built)
    return python


def _install(python: Path, *, by_uv: bool) -> list[str]:
    """Returns the command that installs packages for `python`. With uv, it takes a tenth of the time."""
    if by_uv:
        return [str(require("installers", INSTALLERS).with_name("uv")), "pip", "install", "--python", str(python)]
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install"]
    return [*pip, "--disable-pip-version-check", "--no-compile"]


def _run(command: list[str], what: str) -> None:
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{what}: not installed within {INSTALL_SECONDS} seconds") from None
    if done.returncode:
        errors = (line for line in done.stderr.splitlines() if line.startswith(("ERROR", "error")))
        raise Unavailable(f"{what} could not be installed: {next(errors, f'exit code {done.returncode}')[:300]}")
