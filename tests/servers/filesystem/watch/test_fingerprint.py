"""Fingerprints of files and directories."""

import os

import pytest

from servers.filesystem.watch.fingerprint import MAX_HASHED, take_fingerprint


@pytest.fixture
def content(files, at):
    return lambda name="file": take_fingerprint(files, at(name)).content


def test_a_fingerprint_depends_on_the_bytes_and_not_on_mode_or_times(root, content):
    (root / "file").write_text("b")
    before = content()
    (root / "file").write_text("a")
    first = content()
    assert first != before
    (root / "file").chmod(0o600)
    os.utime(root / "file", (1, 1))
    (root / "new").write_text("a")
    (root / "new").replace(root / "file")
    assert content() == first


def test_missing_empty_and_outside_files_have_different_fingerprints(root, outside, content):
    seen = {content()}
    (root / "file").touch()
    seen.add(content())
    (root / "link").symlink_to(outside / "secret")
    seen.add(content("link"))
    assert len(seen) == 3


def test_the_fingerprint_of_a_directory_depends_on_its_names(root, content):
    first = content(".")
    (root / "file").touch()
    second = content(".")
    (root / "file").write_text("x")
    assert first != second == content(".")


def test_the_fingerprint_of_a_large_file_depends_on_its_status(root, content):
    (root / "file").write_bytes(b"x" * (MAX_HASHED + 1))
    first = content()
    os.utime(root / "file", (1, 1))
    assert content() != first


def test_a_settled_file_is_not_read_again(files, root, at):
    (root / "file").write_text("a")
    first = take_fingerprint(files, at("file"))
    stamp = (*first.stamp[:3], 1, 1)
    older = type(first)(b"kept", first.trail, None, first.stamp, first.checked_at + 10**12)
    assert take_fingerprint(files, at("file"), older).content == b"kept"
    changed = type(first)(b"kept", first.trail, None, stamp, first.checked_at)
    assert take_fingerprint(files, at("file"), changed).content == first.content


def test_the_fingerprint_of_a_directory_has_its_real_path(files, root, at):
    assert take_fingerprint(files, at(".")).directory == str(root)
    (root / "dir").mkdir()
    (root / "link").symlink_to("dir")
    assert take_fingerprint(files, at("link")).directory == f"{root}/dir"
