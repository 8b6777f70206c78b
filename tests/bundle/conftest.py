"""What is not ours and is installed when it is first needed."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from tests import npm, pypi

HERE = Path(__file__).resolve().parent
Needed = TypeVar("Needed")


@pytest.fixture(scope="session")
def installers() -> Path:
    """The folder of uv, uvx and pipx."""
    return _available(lambda: pypi.require("installers", HERE / "requirements-installers.txt").parent)


@pytest.fixture(scope="session")
def node() -> Path:
    """A Node beside which the official tool for MCPB bundles is installed."""

    def ready() -> Path:
        found = npm.find_node()
        npm.require(found, HERE, "the tool for MCPB bundles")
        return found

    return _available(ready)


@pytest.fixture(scope="session")
def hosts() -> Callable[[str], tuple[Path, Path]]:
    """Installs the program of a client by the name of its folder in tests/hosts; a Node, and that folder."""

    def ready(name: str) -> tuple[Path, Path]:
        found, folder = npm.find_node(), HERE.parent / "hosts" / name
        npm.require(found, folder, f"the program of {name}")
        return found, folder

    return lambda name: _available(lambda: ready(name))


def _available(needed: Callable[[], Needed]) -> Needed:
    try:
        return needed()
    except npm.Unavailable as reason:
        if os.environ.get("CI") == "true":
            pytest.fail(str(reason))
        pytest.skip(str(reason))
