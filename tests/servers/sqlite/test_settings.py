"""What the operator may set, and what starting says of it."""

import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from servers.sqlite.engine.database import Source
from servers.sqlite.settings import Settings
from tests.servers.sqlite.serving import served


def start(*options: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "servers.sqlite", *map(str, options)]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False)


def test_a_database_is_called_by_its_file() -> None:
    assert Settings(databases=[Path("some/sales 2026.db")]).sources == [
        Source("sales_2026", Path("some/sales 2026.db"), False)
    ]


@pytest.mark.parametrize(
    ("given", "source"),
    [
        ("a=b.db", Source("a", Path("b.db"), False)),
        ("a=b.db:rw", Source("a", Path("b.db"), True)),
        ("a=C:/b.db:ro", Source("a", Path("C:/b.db"), False)),
        ("a=b=c.db", Source("a", Path("b=c.db"), False)),
    ],
)
def test_a_database_may_have_a_name_and_a_permission(given: str, source: Source) -> None:
    assert Settings(db=[given]).sources == [source]


def test_ro_keeps_a_database_from_being_written_where_others_are() -> None:
    settings = Settings(databases=[Path("a.db")], db=["b=b.db:ro"], allow_write=True)
    assert [source.writable for source in settings.sources] == [True, False]


@pytest.mark.parametrize("bad", ["", "b.db", "=b.db", "a=", "a b=c.db"])
def test_what_is_no_name_and_path_is_refused(bad: str) -> None:
    with pytest.raises(ValidationError):
        Settings(db=[bad])


def test_two_databases_of_one_name_are_refused(tmp_path: Path) -> None:
    ended = start(tmp_path / "a.db", tmp_path / "sub" / "a.db")
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert "two databases are called 'a'" in ended.stderr


def test_a_missing_file_ends_the_start_and_is_not_made(tmp_path: Path) -> None:
    ended = start(tmp_path / "a.db")
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert "there is no file a.db" in ended.stderr
    assert not (tmp_path / "a.db").exists()


def test_a_directory_is_refused_as_what_it_is(tmp_path: Path) -> None:
    ended = start(tmp_path)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert "it is a directory and no database" in ended.stderr


async def test_a_missing_file_is_made_where_the_operator_says_so(tmp_path: Path) -> None:
    async with served("--create", tmp_path / "a.db") as peer:
        assert (await peer.data("read_query", query="SELECT count(*) FROM sqlite_schema"))["rows"] == [[0]]


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--create",)])
def test_a_missing_directory_is_named(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "text").write_text("no directory")
    for above in ("missing", "text"):
        ended = start(*options, tmp_path / above / "a.db")
        assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
        assert f"there is no directory {tmp_path / above}. Make it" in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["text"]


async def test_a_database_in_memory_is_gone_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    async with served(":memory:") as peer:
        assert (await peer.data("read_query", query="SELECT 1"))["rows"] == [[1]]
    assert list(tmp_path.iterdir()) == []


async def test_one_of_several_databases_must_be_named(file: Path, tmp_path: Path) -> None:
    async with served("--create", file, tmp_path / "other.db") as peer:
        assert (await peer.error("read_query", query="SELECT 1")).startswith("bad_database: ")
        assert (await peer.error("read_query", query="SELECT 1", database="x")).endswith("There are: data, other.")
        assert (await peer.data("read_query", query="SELECT 1", database="other"))["rows"] == [[1]]


async def test_paths_in_a_file_of_settings_begin_at_the_file(file: Path, tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text('databases = ["data.db"]\ndb = ["again=data.db:ro"]\n')
    async with served("--settings", tmp_path / "settings.toml") as peer:
        for name in ("data", "again"):
            data = await peer.data("read_query", query="SELECT count(*) FROM numbers", database=name)
            assert data["rows"] == [[1_000]]


@pytest.mark.parametrize("option", ["files", "queries"])
def test_a_home_that_nobody_has_is_no_directory(option: str) -> None:
    with pytest.raises(ValidationError, match="~nobody-of-that-name/x is not a directory"):
        Settings(demo=True, **{option: Path("~nobody-of-that-name/x")})


@pytest.mark.parametrize("option", ["files", "queries"])
def test_a_directory_may_be_named_from_home(option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert getattr(Settings(demo=True, **{option: Path("~")}), option) == tmp_path


def test_a_home_that_nobody_has_holds_no_database() -> None:
    ended = start("~nobody-of-that-name/a.db")
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
