"""The Node that checks browser modules."""

from pathlib import Path

import pytest

from tests.npm import find_node


@pytest.fixture(scope="session")
def node() -> Path:
    """The path of Node; without one the test is skipped, and fails under CI=true."""
    return find_node()
