"""The replaced file after an exchange of names."""

import fcntl
import os

import pytest

from servers.common.files import exchange as module
from servers.common.files.exchange import exchange
from shared.coded_errors import PathError
from shared.program.files.atomic import prepare_replacement


@pytest.fixture
def entry(files, at):
    with files.locate(at("file")) as located:
        yield located


def link(file):
    file.symlink_to("elsewhere")


@pytest.mark.parametrize("make", [link, os.mkfifo])
@pytest.mark.parametrize("data", [None, b"old"])
def test_a_file_replaced_by_a_link_or_pipe_is_restored_without_opening(entry, root, make, data):
    (root / "file").write_text("old")
    status = (root / "file").stat()
    fresh = prepare_replacement(entry, b"new", status)
    (root / "file").unlink()
    make(root / "file")
    other = (root / "file").lstat()
    with pytest.raises(PathError) as caught:
        exchange(fresh, entry, status, data)
    assert caught.value.code == "changed"
    assert os.path.samestat((root / "file").lstat(), other)


def test_the_wait_for_a_continuous_writer_is_limited(entry, root, monkeypatch):
    (root / "file").write_text("old")
    status, add = (root / "file").stat(), module.append
    fresh = prepare_replacement(entry, b"new", status)
    with (root / "file").open("ab", buffering=0) as theirs:

        def add_and_find_more(to, data):
            add(to, data)
            theirs.write(b"more")

        # Another program could not be timed to append after each check.
        monkeypatch.setattr(module, "append", add_and_find_more)
        monkeypatch.setattr(module, "_MAX_SECONDS", 0.05)
        theirs.write(b"more")
        exchange(fresh, entry, status, b"old")
    assert (root / "file").read_text().startswith("newmoremore")


def test_the_file_stays_locked_while_additions_are_copied(entry, root, monkeypatch):
    (root / "file").write_text("old")
    status, add = (root / "file").stat(), module.append
    fresh = prepare_replacement(entry, b"new", status)
    with (root / "file").open("ab") as theirs:
        theirs.write(b"more")

    def add_while_another_asks(to, data):
        with (root / "file").open("rb") as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        add(to, data)

    # Another process could not be timed to lock the file meanwhile.
    monkeypatch.setattr(module, "append", add_while_another_asks)
    exchange(fresh, entry, status, b"old")
    assert (root / "file").read_text() == "newmore"
    with (root / "file").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
