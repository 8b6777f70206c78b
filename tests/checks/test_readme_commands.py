"""Every command of every document, as it is printed, in the order of the page."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import pypi
from tests.checks.bundle.programs import UNCOMPILED
from tests.checks.readme_commands import CHECKOUT, TOOK, Newcomer, Step, steps_of
from tests.documents import PAGES

ROOT = Path(__file__).resolve().parents[2]
FIRST = "README.md"

NOT_RUN = {
    "docker": "needs an engine; tests/checks/docker builds and starts the images without one",
    "kubectl": "needs a cluster; tests/checks/docker checks the manifests against the schemas of Kubernetes",
    "systemctl": "needs systemd; tests/checks/docker has systemd-analyze check the unit",
    "make": "`make setup` and `make check` are what CI does, and runs this test",
}
"""By their first word, the commands that are left out, and why."""

DEBIAN = (
    "bash", "cat", "chmod", "cp", "dirname", "env", "git", "grep", "head", "id", "ls", "mkdir", "mv", "realpath",
    "rm", "sed", "sh", "touch", "tr", "uname",
)  # fmt: skip
"""What a fresh Debian has on its PATH, as far as it matters, beside Python; there is neither `python` nor `pip`."""
REGISTRIES = ("PIP_", "UV_", "SSL_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
"""Beginnings of the variables by which this machine reaches what is installed."""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The only folder on the PATH."""
    folder = tmp_path_factory.mktemp("bin")
    found = {name: shutil.which(name) for name in DEBIAN}
    installers = pypi.require("installers", pypi.INSTALLERS).parent
    found |= {name: str(installers / name) for name in ("pipx", "uv", "uvx")}
    for name, path in found.items():
        assert path is not None, f"there is no {name}"
        (folder / name).symlink_to(path)
    # No link: Python would look for its libraries beside it.
    python = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    (folder / "python3").write_text(f'#!/bin/sh\nexec {python} "$@"\n')
    (folder / "python3").chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def newcomer(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Newcomer:
    """Who has the checkout in an empty home, and has done what README.md begins with."""
    home = tmp_path_factory.mktemp("home") / "me"
    copy_checkout(home / CHECKOUT)
    reaching = {name: value for name, value in os.environ.items() if name.upper().startswith(REGISTRIES)}
    newcomer = Newcomer(home, {**reaching, **UNCOMPILED, "PATH": str(programs)})
    newcomer.follow(beginning())
    return newcomer


def copy_checkout(target: Path) -> None:
    """All files that git knows, or would add, as they are now."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0"):
        if name and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", PAGES)
def test_every_command_has_its_documented_result(
    page: str, newcomer: Newcomer, record_property: Callable[[str, object], None]
) -> None:
    newcomer.follow([step for step in steps(page) if step not in beginning()])
    while newcomer.took:
        record_property(TOOK, newcomer.took.pop(0))


def steps(page: str) -> list[Step]:
    return [step for step in steps_of(ROOT / page, page) if step.text.split()[0] not in NOT_RUN]


def beginning() -> list[Step]:
    """The first block of README.md, without which nothing is installed."""
    first, *others = steps(FIRST)
    return [first, *(step for step in others if step.line == first.line)]


def test_skipped_commands_exist_in_the_pages() -> None:
    said = {step.text.split()[0] for page in PAGES for step in steps_of(ROOT / page, page)}
    assert set(NOT_RUN) <= said


def test_ci_runs_the_commands_left_to_it() -> None:
    left = {step.text.partition(" #")[0].strip() for step in steps_of(ROOT / "CONTRIBUTING.md", "CONTRIBUTING.md")}
    assert left <= set((ROOT / ".ci" / "run").read_text().splitlines())
