"""What is not ours and is installed when it is first needed. At the end of the run it is said how long a new user
takes with each installer."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import npm, pypi
from tests.checks.bundle.programs import run
from tests.records import recorded

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
TRIED = "way of installing"


@pytest.fixture(scope="session")
def installers() -> Path:
    """Returns the folder of uv, uvx and pipx."""
    return pypi.require("installers", pypi.INSTALLERS).parent


@pytest.fixture(scope="session")
def built(installers: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds wheel and source distribution of the checkout; returns their folder."""
    folder = tmp_path_factory.mktemp("dist")
    uv = str(installers / "uv")
    run([uv, "build", "--sdist", "--out-dir", str(folder), str(ROOT)], folder)
    run([uv, "build", "--wheel", "--out-dir", str(folder), str(ROOT)], folder)
    return folder


@pytest.fixture(scope="session")
def wheel(built: Path) -> Path:
    (wheel,) = built.glob("*.whl")
    return wheel


@pytest.fixture(scope="session")
def node() -> Path:
    """Returns a Node with the official tool for MCPB bundles installed."""
    found = npm.find_node()
    npm.require(found, HERE, "the tool for MCPB bundles")
    return found


@pytest.fixture(scope="session")
def hosts() -> Callable[[str], tuple[Path, Path]]:
    """Installs the program of a client, by its folder in tests/checks/host_views; a Node, and that folder."""

    def ready(name: str) -> tuple[Path, Path]:
        found, folder = npm.find_node(), ROOT / "tests" / "checks" / "host_views" / name
        npm.require(found, folder, f"the program of {name}")
        return found, folder

    return ready


def print_tables(terminalreporter: Any) -> None:
    """Prints the duration of each way of installation."""
    ways = list(recorded(terminalreporter, TRIED))
    if ways:
        terminalreporter.section("from nothing to a server that works")
    for way, seconds, last in ways:
        terminalreporter.write_line(f"{way:6} {seconds:5.1f} s  {last}")
