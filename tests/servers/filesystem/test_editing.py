import os
import threading

import pytest

from servers.filesystem.edit import edit as editing
from servers.filesystem.edit.edit import FileEdits, edit_files
from servers.filesystem.edit.replacements import Edit
from servers.filesystem.errors import FilesError


@pytest.fixture
def three(root):
    for name in "abc":
        (root / name).write_text(name)
    return root


@pytest.fixture
def edit(either):
    """Puts a cross behind what each of the files holds; `names` are also their contents."""

    def run(names, **more):
        wanted = [FileEdits(either.roots.place(name), [Edit(name[-1], name[-1] + "+")]) for name in names]
        return edit_files(either, wanted, **more)

    return run


def code(call, *arguments):
    with pytest.raises(FilesError) as caught:
        call(*arguments)
    return caught.value.code


def texts(root):
    """What all files hold, leftovers included."""
    return {path.name: path.read_text() for path in sorted(root.iterdir())}


OLD = {"a": "a", "b": "b", "c": "c"}
NEW = {"a": "a+", "b": "b+", "c": "c+"}


def test_several_files_are_edited(three, edit):
    results = edit("abc")
    assert texts(three) == NEW
    assert [result.diff.splitlines()[0] for result in results] == ["--- a/a", "--- a/b", "--- a/c"]


def test_a_dry_run_of_several_files(three, edit):
    assert all("+" in result.diff for result in edit("abc", dry_run=True))
    assert texts(three) == OLD


def test_where_one_edit_does_not_fit_no_file_is_changed(three, edit):
    (three / "c").write_text("other")
    assert code(edit, "abc") == "no_match"
    assert texts(three) == {**OLD, "c": "other"}


def test_one_file_twice_is_refused(three, edit):
    (three / "da").symlink_to("a")
    for names in (["a", "b", "a"], ["b", "a", "da"]):
        assert code(edit, names) == "bad_edit"
    assert texts(three) == {**OLD, "da": "a"}


def test_where_one_file_can_not_be_replaced_those_before_it_are_as_they_were(three, edit, monkeypatch, no_leak):
    before = {name: (three / name).stat().st_ino for name in "ab"}
    plain = editing.exchange

    def exchange(old, new, *more):
        if new.place.parts == ("c",) and old.name != "c":
            raise OSError(5, "")
        plain(old, new, *more)

    monkeypatch.setattr(editing, "exchange", exchange)
    assert code(edit, "abc") == "io_error"
    assert texts(three) == OLD
    assert {name: (three / name).stat().st_ino for name in "ab"} == before


def test_where_there_are_no_hard_links_files_are_put_back_from_copies(three, edit, monkeypatch):
    plain = editing.exchange

    def exchange(old, new, *more):
        if new.place.parts == ("c",):
            raise OSError(5, "")
        plain(old, new, *more)

    def link(*arguments, **more):
        raise PermissionError(1, "")

    monkeypatch.setattr(editing, "exchange", exchange)
    monkeypatch.setattr(os, "link", link)
    assert code(edit, "abc") == "io_error"
    assert texts(three) == OLD


def test_f25_a_change_of_the_last_file_from_outside_undoes_the_others(three, edit, monkeypatch):
    plain = editing.exchange

    def exchange(old, new, *more):
        plain(old, new, *more)
        if new.place.parts == ("a",):
            (three / "c").write_text("theirs")

    monkeypatch.setattr(editing, "exchange", exchange)
    # The edit is tried again, upon what is there now.
    assert code(edit, "abc") == "no_match"
    assert texts(three) == {**OLD, "c": "theirs"}


def test_what_someone_else_wrote_meanwhile_is_not_undone(three, edit, monkeypatch):
    plain = editing.exchange

    def exchange(old, new, *more):
        if new.place.parts == ("b",):
            (three / "new").write_text("theirs")
            (three / "new").replace(three / "a")
            raise OSError(5, "")
        plain(old, new, *more)

    monkeypatch.setattr(editing, "exchange", exchange)
    assert code(edit, "ab") == "io_error"
    assert texts(three) == {**OLD, "a": "theirs"}


def test_all_files_together_may_not_be_too_large(three, edit, monkeypatch):
    monkeypatch.setattr(editing, "MAX_EDITED", 2)
    assert code(edit, "abc") == "too_large"


def test_several_files_in_any_order_do_not_wait_for_each_other(three, files):
    def run(names):
        for _ in range(20):
            wanted = [FileEdits(files.roots.place(name), [Edit(name, name + "+")]) for name in names]
            edit_files(files, wanted)

    threads = [threading.Thread(target=run, args=(names,), daemon=True) for names in ("abc", "cba", "bca")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(50)
    assert texts(three) == {name: name + "+" * 60 for name in "abc"}
