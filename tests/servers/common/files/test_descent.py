"""Directories below a start, one open at a time."""

from pathlib import Path

import pytest

from servers.common.files.descent import descent
from servers.common.files.rooted_files import RootedFiles
from shared.coded_errors import PathError


def test_a_link_that_replaces_a_file_is_not_opened(either: RootedFiles, root: Path) -> None:
    (root / "file").write_text("text")
    (root / "link").symlink_to("file")
    with descent(either, either.roots.place(".")) as below:
        below.scan(())
        with pytest.raises(PathError):
            below.open_file("link")
