"""What checks modules for browsers without one."""

from pathlib import Path

import pytest

from tests.npm import find_node


@pytest.fixture(scope="session")
def node() -> Path:
    """A Node; where there is none the test is skipped, and fails under CI=true."""
    return find_node()
