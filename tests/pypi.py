"""PyPI packages that tests need in an environment of their own: pinned in a file, installed when first needed."""

import shutil
import subprocess
import sys
from pathlib import Path

from filelock import FileLock

from tests.npm import Unavailable

ROOT = Path(__file__).resolve().parents[1]
INSTALL_SECONDS = 300


def pinned(file: Path) -> dict[str, str]:
    """The packages that `file` asks for, and their versions."""
    return dict(line.split("==") for line in file.read_text().splitlines())


def require(name: str, file: Path) -> Path:
    """The Python of the environment `name`, which holds what `file` lists and is built unless it is there.

    It stays, in a folder that git ignores, until the file changes; a process waits while another builds it. Raises
    Unavailable."""
    folder = ROOT / f".venv-{name}"
    built = folder / "requirements.txt"  # written last: where it is missing, building was broken off
    python = folder / "bin" / "python"
    with FileLock(f"{folder}.lock"):
        if not built.exists() or built.read_text() != file.read_text():
            venv = [sys.executable, "-m", "venv", "--clear", "--without-pip"]
            _run([*venv, str(folder)], f"an environment for {name}")
            pip = [sys.executable, "-m", "pip", "--python", str(python), "install"]
            # The file pins all of them, and Python compiles what it imports: half of the work.
            pip += ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-compile"]
            _run([*pip, "-r", str(file)], f"the packages of {file.name}")
            shutil.copyfile(file, built)
    return python


def _run(command: list[str], what: str) -> None:
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{what}: not installed within {INSTALL_SECONDS} seconds") from None
    if done.returncode:
        errors = (line for line in done.stderr.splitlines() if line.startswith("ERROR"))
        raise Unavailable(f"{what} could not be installed: {next(errors, f'exit code {done.returncode}')[:300]}")
