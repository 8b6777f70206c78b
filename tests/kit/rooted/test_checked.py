import os

import pytest

from shared.kit.errors import PathError
from shared.kit.rooted.files import RootedFiles
from shared.kit.rooted.roots import Roots


@pytest.fixture
def checked(root):
    return RootedFiles(Roots([root], writable=True), race_free=False)


def test_an_entry_is_a_whole_path(checked, root):
    (root / "file").touch()
    with checked.locate(checked.roots.place("file")) as entry:
        assert (entry.directory, entry.name) == (None, f"{root}/file")
        assert entry.sibling("other") == f"{root}/other"


def test_what_was_swapped_between_check_and_open_is_refused(checked, root, outside):
    (root / "dir").mkdir()
    (root / "dir" / "secret").touch()
    with checked.locate(checked.roots.place("dir/secret")) as entry:
        os.rename(root / "dir", root / "kept")
        (root / "dir").symlink_to(outside)
        with pytest.raises(PathError) as caught:
            checked.open_entry(entry, "dir/secret")
    assert caught.value.code == "changed"


def test_the_trail_has_both_ways(checked, root):
    (root / "a").mkdir()
    (root / "link").symlink_to("a")
    trail = checked.trail(checked.roots.place("link/x"))
    assert trail == (f"{root}/link", f"{root}/link/x", f"{root}/a", f"{root}/a/x")
