"""The fixtures of the tests of `servers.common.files`, and short ways to change files."""

import pytest

from servers.filesystem.edit.write import write_file
from tests.servers.common.files.conftest import SECRET, at, either, files, no_leak, outside, root, swapping, way
from tests.servers.filesystem.editing_files import edit_file

__all__ = ["SECRET", "at", "either", "files", "no_leak", "outside", "root", "swapping", "way"]


def by_path(act, files):
    """Takes a path where the act takes a place."""
    return lambda path, *arguments, **more: act(files, files.roots.place(path), *arguments, **more)


@pytest.fixture
def write(files):
    return by_path(write_file, files)


@pytest.fixture
def edit(files):
    return lambda path, *edits, **more: by_path(edit_file, files)(path, edits, **more)
