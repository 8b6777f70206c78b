"""Watched globs and listings, and their shared cost."""

import pytest

from servers.common.files.names import uri
from servers.common.files.narrowing import narrow
from servers.common.globs import Glob, reachable_patterns
from servers.filesystem.errors import FilesError
from servers.filesystem.watch import subscriptions
from servers.filesystem.watch.subscriptions import MAX_LISTED, GlobsByKey, GlobTrees, Listings, split_glob
from servers.filesystem.watch.tree import EntryQuota, Event
from servers.filesystem.watch.watcher import Watcher

SPLIT = {
    "file:///root/src/**/*.py": ("file:///root/src/", "./**/*.py"),
    "file:///root/*.py": ("file:///root/", "./*.py"),
    "file:///root/a%5B1%5D/**/*.%7Ba,b%7D": ("file:///root/a%5B1%5D/", "./**/*.{a,b}"),
    "file:///root/**/%3F.txt": ("file:///root/", "./**/?.txt"),
    "file:///root/a%2Ab": None,
    "file:///root/a.txt": None,
}
REACHED = {
    "./*.py": ("./*",),
    "./**/*.py": ("./**/*",),
    "./**/a*/b/*.py": ("./**/*",),
    "./a*/**/b/*.py": ("./a*/**/*",),
    "./a*/b/*.py": ("./a*/b/*",),
    "./{a,**}/{b,c}*": ("./**/*", "./a/*"),
    "./**": ("./**/*",),
}


def test_uris_are_split_into_globs_and_reachable_patterns():
    assert {uri: split_glob(uri) for uri in SPLIT} == SPLIT
    assert {pattern: reachable_patterns(pattern) for pattern in REACHED} == REACHED
    with pytest.raises(FilesError, match="no file name"):
        split_glob("file:///root/*\ud800")


async def ignore(_key):
    pass


@pytest.fixture
def watcher(files):
    made = Watcher(files, ignore)
    made._quota = EntryQuota(1_000)  # nothing else shows how many entries are remembered
    return made


@pytest.fixture
def read_directories(files, monkeypatch):
    """The directories that are read; nothing else but the time shows them."""
    places, open_directory = [], files.open_directory

    def recording(place, follow=True):
        places.append("/".join(place.parts))
        return open_directory(place, follow)

    monkeypatch.setattr(files, "open_directory", recording)
    return places


@pytest.fixture
def compared_names(monkeypatch):
    """The names that are compared with globs; nothing else but the time shows them."""
    names, step = [], Glob.step

    def recording(glob, states, name):
        names.append(name)
        return step(glob, states, name)

    monkeypatch.setattr(Glob, "step", recording)
    return names


async def test_a_hundred_globs_read_a_directory_once(watcher, read_directories, files, root, at):
    (root / "sub").mkdir()
    for number in range(20):
        (root / "sub" / str(number)).touch()
    globs = GlobTrees(watcher, ignore)
    for number in range(100):
        await globs.watch(str(number), at("."), f"./**/*{number}*", files)
    assert read_directories == ["", "sub"]
    assert watcher._quota._left == 1_000 - 21


async def test_globs_of_another_depth_read_the_directory_separately(watcher, read_directories, files, root, at):
    (root / "sub").mkdir()
    globs = GlobTrees(watcher, ignore)
    await globs.watch("near", at("."), "./*.py", files)
    assert read_directories == [""]
    await globs.watch("far", at("."), "./**/*.py", files)
    assert read_directories == ["", "", "sub"]


async def test_globs_below_the_roots_of_two_clients_have_separate_trees(watcher, files, root):
    globs = GlobTrees(watcher, ignore)
    for name in ("one", "other"):
        (root / name).mkdir()
        narrowed = narrow(files, [(root / name).as_uri()])
        await globs.watch(name, narrowed.roots.place(str(root / name)), "./*", narrowed)
    assert {tree.directories for tree, _ in globs._trees.values()} == {(f"{root}/one",), (f"{root}/other",)}


async def test_watching_a_tree_ends_with_its_last_glob(watcher, files, at):
    globs = GlobTrees(watcher, ignore)
    for key in "ab":
        await globs.watch(key, at("."), f"./{key}*", files)
    assert watcher.health["watched"] == 1
    globs.unwatch("a")
    assert watcher.health["watched"] == 1
    globs.unwatch("b")
    globs.unwatch("b")
    assert watcher.health["watched"] == 0


@pytest.fixture
def events(at):
    return lambda *paths: [Event("created", at(path)) for path in paths]


def test_only_keys_with_matching_globs_are_affected(events):
    globs_by_key = GlobsByKey(("src",))
    for key, pattern in (("py", "./*.py"), ("any", "./**/a.*"), ("deep", "./x/**/*.py")):
        globs_by_key.add(key, Glob([pattern]))
    assert globs_by_key.affected_keys(events("src/b.py")) == ["py"]
    assert globs_by_key.affected_keys(events("src/x/a.txt")) == ["any"]
    assert globs_by_key.affected_keys(events("src/x/y/b.py", "src/b.txt")) == ["deep"]
    globs_by_key.remove("py")
    assert globs_by_key.affected_keys(events("src/b.py")) == []


def test_affected_globs_are_not_compared_again_and_too_many_are_all_affected(events, compared_names, monkeypatch):
    globs_by_key = GlobsByKey(())
    globs_by_key.add("all", Glob(["./*"]))
    assert globs_by_key.affected_keys(events(*map(str, range(100)))) == ["all"]
    assert len(compared_names) == 1
    monkeypatch.setattr(subscriptions, "MAX_COMPARED", 20)
    globs_by_key = GlobsByKey(())
    for key in map(str, range(10)):
        globs_by_key.add(key, Glob([f"./{key}"]))
    assert globs_by_key.affected_keys(events("1", "x")) == ["1"]
    assert len(compared_names) <= 1 + 20
    compared_names.clear()
    assert len(globs_by_key.affected_keys(events("1", "2", "3"))) == 10
    assert compared_names == []


async def fail_on_change(*_):
    raise AssertionError("nothing changes here")


@pytest.fixture
def listing(files, root):
    """List these sets of parts in turn, and return the number of watched parts."""
    watcher = Watcher(files, fail_on_change)
    listings = Listings(watcher)

    async def listed(*sets):
        for names in sets:
            await listings.watch(narrow(files, [uri(str(root / name)) for name in names]), fail_on_change)
        return watcher.health["watched"]

    return listed


async def test_each_listed_part_is_watched_once(listing):
    assert await listing("a", "a", "bc", "a") == 3


async def test_only_the_last_listed_sets_are_watched(listing):
    numbers = [[str(number)] for number in range(MAX_LISTED)]
    assert await listing("xy", *numbers) == MAX_LISTED
    assert await listing("xy", *numbers[1:], "xy", "n") == MAX_LISTED + 1
