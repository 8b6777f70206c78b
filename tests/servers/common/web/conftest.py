"""What checks modules for browsers without one."""

import os
from pathlib import Path

import pytest

from tests.npm import Unavailable, find_node


@pytest.fixture(scope="session")
def node() -> Path:
    """A Node; where there is none the test is skipped, and fails under CI=true."""
    try:
        return find_node()
    except Unavailable as reason:
        pytest.fail(str(reason)) if os.environ.get("CI") == "true" else pytest.skip(str(reason))
