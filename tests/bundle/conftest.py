"""What is not ours and is installed when it is first needed."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import npm, pypi

HERE = Path(__file__).resolve().parent


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


def _available(path: Callable[[], Path]) -> Path:
    try:
        return path()
    except npm.Unavailable as reason:
        if os.environ.get("CI") == "true":
            pytest.fail(str(reason))
        pytest.skip(str(reason))
