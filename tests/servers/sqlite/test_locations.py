"""Locations of databases, including URLs of other programs."""

from pathlib import Path

import pytest

from servers.sqlite.locations import read_location
from servers.sqlite.settings import Settings


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("shop.db", "shop.db"),
        (" a b.db", " a b.db"),
        ("C:\\shop.db", "C:\\shop.db"),
        ("sqlite:///shop.db", "shop.db"),
        ("sqlite:////data/shop.db", "/data/shop.db"),
        ("'sqlite+aiosqlite:///my%20shop.db'", "my shop.db"),
        ("sqlite://", ":memory:"),
        ("sqlite:///:memory:", ":memory:"),
        ("file:shop.db", "shop.db"),
        ("file:///data/shop.db", "/data/shop.db"),
    ],
)
def test_a_sqlite_url_is_read_as_a_path(given: str, path: str) -> None:
    assert read_location(given) == path


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("postgresql://u:secret@h/shop", "mcp-bundle-postgres"),
        ("mysql://u:secret@h/shop", "mysql"),
        ("file:shop.db?mode=ro", "'mode' here; a permission is written as --db NAME=PATH:ro"),
    ],
)
def test_a_location_that_is_not_a_file_is_refused(given: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        read_location(given)
    assert "secret" not in str(caught.value)


def test_databases_are_given_as_urls() -> None:
    settings = Settings(databases=["sqlite:///shop.db"], db=["staff=sqlite:////data/staff.db:rw"])  # type: ignore[list-item]
    assert [(one.name, one.path, one.writable) for one in settings.sources] == [
        ("shop", Path("shop.db"), False),
        ("staff", Path("/data/staff.db"), True),
    ]
    for wrong in ({"databases": ["mysql://h/shop"]}, {"db": ["staff=mysql://h/shop"]}):
        with pytest.raises(ValueError, match="a URL with mysql"):
            Settings(**wrong)  # type: ignore[arg-type]
