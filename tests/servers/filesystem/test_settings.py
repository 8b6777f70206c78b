"""What the operator says, and what it means."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from servers.filesystem.features.edit import read_only
from servers.filesystem.settings import Settings


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    for name in ("a", "b", "c:rw"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("given", "directories"),
    [
        ({"roots": ["a", "b"]}, {"a": False, "b": False}),
        ({"roots": ["a"], "allow_write": True}, {"a": True}),
        ({"roots": ["a"], "root": ["b:rw"]}, {"a": False, "b": True}),
        ({"root": ["a:ro", "b"], "allow_write": True}, {"a": False, "b": True}),
        ({"root": ["a"]}, {"a": False}),
        ({"roots": ["c:rw"]}, {"c:rw": False}),
        ({"root": ["c:rw:ro"]}, {"c:rw": False}),
    ],
)
def test_each_directory_has_its_permission(given, directories):
    settings = Settings(**given)
    assert {str(path): writable for path, writable in settings.directories} == directories
    assert settings.writes == any(directories.values())
    assert (read_only(settings) is None) == settings.writes


def test_plain_directories_come_first():
    assert [path for path, _ in Settings(root=["a:rw"], roots=["b"]).directories] == [Path("b"), Path("a")]


def test_a_home_that_nobody_has_is_no_directory() -> None:
    with pytest.raises(ValidationError, match="~nobody-of-that-name is not a directory"):
        Settings(roots=[Path("~nobody-of-that-name")])
