"""The settings of the operator."""

import sqlite3
from pathlib import Path

import pytest
from pydantic import ValidationError

from servers.common.sql import server as common_server
from servers.common.sql.features import context
from servers.common.sql.settings import Narrowing
from servers.sqlite import server
from servers.sqlite.engine.database import Source
from servers.sqlite.engine.deadline import Limits
from servers.sqlite.engine.extensions import SqliteExtension
from servers.sqlite.engine.hiding import parse_hidden
from servers.sqlite.engine.opening import ConnectionOptions
from servers.sqlite.server import app
from servers.sqlite.settings import Settings, read_location
from tests.servers.peers import ada_and_bob, inside, record, settings_of


def test_a_database_is_named_after_its_file() -> None:
    assert Settings(databases=[Path("some/sales 2026.db")]).sources == [
        Source("sales_2026", Path("some/sales 2026.db"), False)
    ]


def test_a_database_may_have_a_name_and_a_permission() -> None:
    given = {
        "a=b.db": Source("a", Path("b.db"), False),
        "a=b.db:rw": Source("a", Path("b.db"), True),
        "a=C:/b.db:ro": Source("a", Path("C:/b.db"), False),
        "a=b=c.db": Source("a", Path("b=c.db"), False),
    }
    assert {one: Settings(db=[one]).sources for one in given} == {one: [source] for one, source in given.items()}


def test_ro_makes_a_database_read_only_despite_allow_write() -> None:
    settings = Settings(databases=[Path("a.db")], db=["b=b.db:ro"], allow_write=True)
    assert [source.writable for source in settings.sources] == [True, False]


def test_a_db_option_without_name_or_path_is_refused() -> None:
    for bad in ("", "b.db", "=b.db", "a=", "a b=c.db"):
        with pytest.raises(ValidationError):
            Settings(db=[bad])


def test_the_demo_database_is_writable_with_allow_write() -> None:
    for allowed in (False, True):
        (source,) = Settings(demo=True, allow_write=allowed).sources
        assert source == Source("demo", Path("demo.db"), allowed, sample=True)


def test_a_tilde_in_a_directory_is_expanded_for_known_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for option in ("files", "queries"):
        assert getattr(Settings(demo=True, **{option: Path("~")}), option) == tmp_path
        with pytest.raises(ValidationError, match="~nobody-of-that-name/x is not a directory"):
            Settings(demo=True, **{option: Path("~nobody-of-that-name/x")})


OPTIONS = """--demo --db a=./a.db:rw --timeout 1 --busy-timeout 2 --max-value 3000 --max-memory 600 --readers 5
--create --attach --max-export 6000 --max-rows 7 --max-page 8000 --max-cell 900"""
"""The limit of memory is above the default: SQLite has one for the whole process, which can only be lowered."""


async def test_every_option_reaches_its_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    opened = record(monkeypatch, server, "open_databases")
    given = record(monkeypatch, common_server, "Exports")
    limits = record(monkeypatch, context, "AnswerLimits")
    async with inside(app, *OPTIONS.split()) as peer:
        await peer.text("read_query", query="SELECT 1", database="a")
        turns = {name: [queue._at_once for queue in queues] for name, queues in peer.running.state.turns.items()}
    sources = [Source("a", Path("a.db"), True), Source("demo", Path("demo.db"), False, sample=True)]
    more = (True, True, ConnectionOptions())
    assert turns == {"a": [5, 1], "demo": [5, 1]}
    assert opened["open_databases"] == (sources, Limits(1, 2, 3_000, 600), 5, *more)
    assert (given["Exports"], limits["AnswerLimits"]) == ((6_000,), (7, 8_000, 900))


def test_extensions_and_hidden_names_reach_every_connection(tmp_path: Path) -> None:
    settings = settings_of(app, "--demo", "--extension", f"{tmp_path}/e.so=init", "--hide", "t.c=1")
    extension = SqliteExtension(tmp_path / "e.so", "init")
    assert settings.connection_options == ConnectionOptions((parse_hidden("t.c=1"),), (extension,))


# Narrowed settings of a principal


OF_OTHERS = "nobody else may read this"


@pytest.fixture
def databases(tmp_path: Path) -> Settings:
    for name in ("shop", "staff"):
        with sqlite3.connect(tmp_path / f"{name}.db") as connection:
            connection.execute(f"CREATE TABLE {name}_table (x)")
            connection.execute(f"INSERT INTO {name}_table VALUES ('{OF_OTHERS if name == 'staff' else 'ware'}')")
        connection.close()
    (tmp_path / "files").mkdir()
    paths = [tmp_path / "shop.db", tmp_path / "staff.db"]
    return Settings(databases=paths, files=tmp_path / "files")


async def test_a_principal_sees_only_its_databases(databases: Settings) -> None:
    shop = databases.narrow(Narrowing(databases=["shop"]))
    async with ada_and_bob(app, databases, shop) as (ada, bob):
        assert "ware" in str(await ada.call("read_query", query="SELECT * FROM shop_table"))
        answer = str(await ada.call("read_query", database="staff", query="SELECT * FROM staff_table"))
        assert OF_OTHERS not in answer
        assert "staff" not in str(await ada.request("resources/list"))
        assert "staff" not in str(await ada.call("describe_database"))
        attached = f"ATTACH '{databases.sources[1].path}' AS other"
        assert "isError" in str(await ada.call("read_query", query=attached))
        assert OF_OTHERS in str(await bob.call("read_query", database="staff", query="SELECT * FROM staff_table"))


def test_narrowed_settings_have_files_only_if_given(databases: Settings, tmp_path: Path) -> None:
    assert databases.narrow(Narrowing(databases=["shop"])).files is None
    given = databases.narrow(Narrowing(databases=["shop"], files=tmp_path / "files"))
    assert given.files == tmp_path / "files"
    with pytest.raises(ValueError, match="is not in any"):
        databases.narrow(Narrowing(databases=["shop"], files=tmp_path))


@pytest.mark.parametrize(("names", "wrong"), [(["nothing"], "available: shop, staff"), ([], "name at least one")])
def test_narrowing_to_an_unknown_database_is_refused(names: list[str], wrong: str, databases: Settings) -> None:
    with pytest.raises(ValueError, match=wrong):
        databases.narrow(Narrowing(databases=names))


def test_narrowed_settings_can_be_narrowed_further(databases: Settings) -> None:
    shop = databases.narrow(Narrowing(databases=["shop"]))
    assert [source.name for source in databases.sources] == ["shop", "staff"]
    with pytest.raises(ValueError, match="no database 'staff'"):
        shop.narrow(Narrowing(databases=["staff"]))


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
        ("sqlite:/data/shop.db", "/data/shop.db"),
        ("sqlite3:shop.db", "shop.db"),
        ("jdbc:sqlite:shop.db", "shop.db"),
        ("sqlite::memory:", ":memory:"),
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
