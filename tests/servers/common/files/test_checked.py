import os

import pytest

from servers.common.files.checked import PathWalker
from servers.common.files.rooted_files import RootedFiles
from servers.common.files.roots import Roots
from shared.coded_errors import PathError
from tests.servers.common.files.conftest import SECRET


@pytest.fixture
def checked(root):
    roots = Roots([root], writable=True)
    return RootedFiles(roots, PathWalker(roots))


def test_an_entry_contains_the_whole_path(checked, root):
    (root / "file").touch()
    with checked.locate(checked.roots.place("file")) as entry:
        assert (entry.directory, entry.name) == (None, f"{root}/file")
        assert entry.sibling("other") == f"{root}/other"


def test_a_directory_swapped_between_check_and_open_is_refused(checked, root, outside):
    (root / "dir").mkdir()
    (root / "dir" / "secret").touch()
    with checked.locate(checked.roots.place("dir/secret")) as entry:
        os.rename(root / "dir", root / "kept")
        (root / "dir").symlink_to(outside)
        with pytest.raises(PathError) as caught:
            checked.open_entry(entry, "dir/secret")
    assert caught.value.code == "changed"


def test_the_trail_has_the_path_of_the_link_and_of_its_target(checked, root):
    (root / "a").mkdir()
    (root / "link").symlink_to("a")
    trail = checked.trail(checked.roots.place("link/x"))
    assert trail == (f"{root}/link", f"{root}/link/x", f"{root}/a", f"{root}/a/x")


@pytest.fixture
def short_names(root, monkeypatch):
    """Short names in the root and their long names, as on Windows."""
    names = {}

    def long(path):
        above, name = os.path.split(path)
        return os.path.join(above, names.get(name.upper(), name))

    def resolving_short_names(act):
        return lambda path, *more, **named: act(long(path) if isinstance(path, str) else path, *more, **named)

    for module, act in ((os, "lstat"), (os, "stat"), (os.path, "realpath"), (os.path, "lexists")):
        monkeypatch.setattr(module, act, resolving_short_names(getattr(module, act)))
    return names


@pytest.mark.parametrize("follow", [True, False])
def test_a_short_name_does_not_lead_to_a_denied_file(checked, root, short_names, follow):
    (root / ".env").write_text(SECRET)
    short_names["ENV~1"] = ".env"
    for written in (".env", "ENV~1", "env~1"):
        with pytest.raises(PathError) as caught, checked.locate(checked.roots.place(written), follow):
            pass
        assert caught.value.code == ("denied" if follow or written == ".env" else "not_found")


@pytest.mark.parametrize("follow", [True, False])
def test_a_short_name_does_not_lead_to_an_inner_root(root, short_names, follow):
    (root / "inner dir").mkdir()
    short_names["INNERD~1"] = "inner dir"
    roots = Roots([root, root / "inner dir"], writable=[True, False])
    files = RootedFiles(roots, PathWalker(roots))
    with pytest.raises(PathError) as caught, files.locate(roots.place("root/INNERD~1"), follow) as entry:
        roots.require_movable(entry.place)
    assert caught.value.code == ("bad_path" if follow else "not_found")


def test_an_unresolvable_short_name_of_a_parent_is_not_found(checked, root, short_names, monkeypatch):
    (root / ".ssh").mkdir()
    (root / ".ssh" / "config").write_text(SECRET)
    short_names["SSH~1"] = ".ssh"
    monkeypatch.setattr(os.path, "realpath", lambda path: path)
    with pytest.raises(PathError) as caught, checked.locate(checked.roots.place("SSH~1/config")):
        pass
    assert caught.value.code == "not_found"


@pytest.mark.parametrize("follow", [True, False])
def test_a_real_name_that_looks_like_a_short_name_is_found(checked, root, follow):
    (root / "copy~1").touch()
    with checked.locate(checked.roots.place("copy~1"), follow) as entry:
        assert entry.stat is not None
    with checked.locate(checked.roots.place("copy~2"), follow) as entry:
        assert entry.stat is None
