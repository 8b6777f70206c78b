"""Finding files by their names."""

import os
import sys
import tempfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servers.common.files import descent
from servers.filesystem.errors import FilesError
from servers.filesystem.search.files import Scope, SearchProgress, search_files
from servers.filesystem.search.page import Page
from servers.filesystem.search.summaries import search_text
from tests.privileges import modes_enforced


@pytest.fixture
def search(files, root, at):
    for name in ("b.py", "a/c.py", "a/.d.py", "a/x/e.py", "a/x/f.txt", "z/g.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()

    return searcher(files)


def searcher(files):
    def call(pattern, *exclude, start=".", progress=None, limit=1_000, max_bytes=sys.maxsize, cursor=None, **scope):
        return search_files(
            files,
            files.roots.place(start),
            Scope(pattern, exclude, **scope),
            Page(limit, max_bytes, cursor),
            progress or SearchProgress(),
        )

    return call


def paths(result):
    return [match["path"] for match in result["matches"]]


def test_globs_match_at_any_depth_relative_to_the_start(search):
    assert paths(search("*.py")) == ["b.py", "a/.d.py", "a/c.py", "a/x/e.py", "z/g.py"]
    assert paths(search("x/*", start="a")) == ["x/e.py", "x/f.txt"]
    assert search_text(search("?"), "?").splitlines() == ["a/", "z/", "a/x/"]
    assert paths(search("*.py", "a/x", "z")) == ["b.py", "a/.d.py", "a/c.py"]


def test_a_search_stops_at_the_limit(search):
    result = search("*.py", limit=2)
    assert (len(result["matches"]), result["stopped"]) == (2, "limit")
    assert (search("*.txt", limit=1)["stopped"], search("*.txt", limit=1)["cursor"]) == (None, None)


def test_a_search_stops_at_the_budget_of_steps_and_continues(search):
    result = search("**/*.py", max_steps=5)
    assert result["stopped"] == "budget"
    assert paths(result) + paths(search("**/*.py", cursor=result["cursor"])) == paths(search("**/*.py"))


def test_a_search_ends_at_its_deadline_or_when_cancelled(search):
    progress = SearchProgress()
    progress.cancel()
    assert search("*", progress=progress)["stopped"] == "cancelled"
    times = iter([0.0, 1.0, 2.0, 3.5])
    result = search("*", progress=SearchProgress(3.0, lambda: next(times)))
    assert result["stopped"] == "time"
    assert paths(result) + paths(search("*", cursor=result["cursor"])) == paths(search("*"))


def test_a_search_cancelled_within_a_large_directory_continues_there(search, root):
    names = [f"{number:03}.txt" for number in range(200)]
    for name in names:
        (root / "z" / name).touch()
    progress = SearchProgress()
    progress.cancel()
    pages, cursor = [], None
    for _ in range(4):
        result = search("*.txt", "b.py", start="z", progress=progress, cursor=cursor)
        pages.append(paths(result))
        cursor = result["cursor"]
    assert [len(page) for page in pages] == [64, 64, 64, 8]
    assert [name for page in pages for name in page] == names


def test_only_a_link_at_the_start_is_followed(search, root, outside):
    (root / "out").symlink_to(outside)
    (root / "loop").symlink_to(".")
    (root / "link").symlink_to("a")
    assert paths(search("secret")) == []
    assert search_text(search("loop"), "loop") == "loop (link)"
    assert paths(search("c.py", start="link")) == ["c.py"]
    with pytest.raises(FilesError):
        search("*", start="b.py")


def test_names_are_escaped_and_the_uri_given(search, root):
    (root / os.fsdecode(b"a\n\xe9")).touch()
    assert search_text(search("a??"), "a??") == f"a\\n\\xe9 (file://{root}/a%0A%E9)"


def test_unreadable_directories_are_counted(search, root):
    (root / "a").chmod(0)
    with modes_enforced():
        assert search("*.py")["unreadable"] == 1
    (root / "a").chmod(0o700)


def test_a_search_leaves_no_descriptor_open(search, no_leak):
    for _ in range(20):
        search("**/*.py")
        search("*", limit=1)


def test_a_brace_bomb_is_refused(search):
    for pattern in ("{a,b}" * 20, "{a," * 300 + "}" * 300):
        with pytest.raises(FilesError) as caught:
            search(pattern)
        assert caught.value.code == "bad_pattern"


def test_a_glob_of_many_stars_is_quick(search, root):
    (root / ("a" * 200)).touch()
    assert paths(search("a*" * 100 + "b")) == []


def every_page(search, *arguments, cursor=None, **options):
    """The results of all pages from `cursor` on."""
    result = search(*arguments, cursor=cursor, **options)
    matches = paths(result)
    while result["cursor"]:
        result = search(*arguments, cursor=result["cursor"], **options)
        matches += paths(result)
    return matches


def test_pages_continue_in_walk_order_within_the_byte_limit(search):
    for limit in (1, 2, 3, 100):
        assert every_page(search, "*", limit=limit) == paths(search("*"))
    assert len(search("*", max_bytes=80)["matches"]) < 5
    assert every_page(search, "*", max_bytes=500) == paths(search("*"))


def test_a_walk_deeper_than_the_open_levels_finds_all(search, root, no_leak, monkeypatch):
    monkeypatch.setattr(descent, "MAX_OPEN_LEVELS", 2)
    for path in ("d/d/d/d/x.c", "d/d/d/e/x.c", "d/e/d/d/x.c"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()
    assert paths(search("*.c")) == ["d/d/d/d/x.c", "d/d/d/e/x.c", "d/e/d/d/x.c"]


def test_both_walkers_find_the_same_files(either, root):
    for path in ("a/b/c.py", "a/d.py", "e.py"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()
    assert paths(searcher(either)("*.py")) == ["e.py", "a/d.py", "a/b/c.py"]


NAMES = st.sampled_from(["a", "b", "c", "ab", ".x", "B"])
PATHS = st.lists(st.lists(NAMES, min_size=1, max_size=3).map("/".join), max_size=8)


def make(folder, paths):
    for path in paths:
        try:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).touch()
        except (FileExistsError, NotADirectoryError):
            continue


def remove(folder, paths):
    for path in paths:
        try:
            (folder / path).unlink()
        except OSError:
            continue


def present(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.slow
@settings(max_examples=60)
@given(there=PATHS, changes=st.lists(st.tuples(PATHS, PATHS), min_size=1, max_size=4), limit=st.integers(1, 3))
def test_a_file_present_throughout_is_listed_once_despite_other_changes(files, root, there, changes, limit):
    folder = Path(tempfile.mkdtemp(dir=root))
    make(folder, there)
    throughout = present(folder)
    search = partial(searcher(files), "*", start=folder.name, limit=limit)
    result = search()
    listed = paths(result)
    for made, removed in changes:
        remove(folder, removed)
        throughout &= present(folder)
        make(folder, made)
        if result["cursor"]:
            result = search(cursor=result["cursor"])
            listed += paths(result)
    if result["cursor"]:
        listed += every_page(search, cursor=result["cursor"])
    assert len(listed) == len(set(listed))
    assert throughout <= set(listed)


def test_a_search_ends_before_a_document_without_enough_time_left():
    now = 0.0
    progress = SearchProgress(9, clock=lambda: now)
    assert progress.share_of_time() == 3
    now = 6.5
    assert progress.share_of_time() is None
    assert progress.stop_reason() == "time"
