"""Extensions of SQLite that the operator has loaded."""

import sqlite3
from pathlib import Path

import pytest

from servers.sqlite.engine.extensions import SqliteExtension, parse_extension
from tests.servers.sqlite.serving import inside

needs_loading = pytest.mark.skipif(
    not hasattr(sqlite3.Connection, "enable_load_extension"), reason="this Python can't load extensions of SQLite"
)


def test_an_extension_is_a_path_with_an_optional_entry_point() -> None:
    assert [parse_extension(one) for one in ("/a/b=c.so", "x.so=sqlite3_y_init", "/a.so")] == [
        SqliteExtension(Path("/a/b=c.so")),
        SqliteExtension(Path("x.so"), "sqlite3_y_init"),
        SqliteExtension(Path("/a.so")),
    ]
    with pytest.raises(ValueError, match="empty"):
        parse_extension("")


async def test_an_extension_that_fails_to_load_stops_the_start_without_its_path(file: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"extension nothing\.so can't be loaded|built without") as caught:
        async with inside("--extension", tmp_path / "nothing.so", file):
            pass
    assert "nothing.so: " not in str(caught.value)


@needs_loading
async def test_sqlite_vec_works_and_no_statement_loads_another_extension(file: Path) -> None:
    path = pytest.importorskip("sqlite_vec").loadable_path()
    make = """
        CREATE VIRTUAL TABLE near USING vec0(place float[2]);
        INSERT INTO near (rowid, place) VALUES (1, '[1, 1]'), (2, '[5, 5]');"""
    query = "SELECT rowid FROM near WHERE place MATCH '[4, 4]' AND k = 1"
    async with inside("--extension", f"{path}=sqlite3_vec_init", "--allow-write", file) as peer:
        assert (await peer.text("write_query", query=make)).startswith("committed; ")
        assert (await peer.data("read_query", query=query))["rows"] == [[2]]
        for refused in (f"SELECT load_extension('{path}')", "CREATE VIRTUAL TABLE x USING dbstat"):
            assert (await peer.text("write_query", query=refused)).startswith("refused: ")
    # A server without the extension can't read such a table.
    async with inside(file) as peer:
        assert (await peer.call("read_query", query=query)).get("isError")


@needs_loading
async def test_vec0_tables_with_more_columns_are_read_and_shadow_tables_not_listed(
    tmp_path: Path,
) -> None:
    path = pytest.importorskip("sqlite_vec").loadable_path()
    make = """
        CREATE VIRTUAL TABLE items USING vec0(
            id INTEGER PRIMARY KEY, kind TEXT PARTITION KEY, place float[2], price FLOAT, title TEXT, +note TEXT);
        INSERT INTO items VALUES
            (7, 'a', '[1, 1]', 2.5, 'long enough for a table', 'x'),
            (8, 'b', '[1, 2]', 9.5, '', 'y')"""
    query = "SELECT id, note FROM items WHERE place MATCH '[1, 2]' AND k = 5 AND kind = 'a' AND price < 5"
    async with inside("--extension", path, "--allow-write", "--create", tmp_path / "vectors.db") as peer:
        assert (await peer.text("write_query", query=make)).startswith("committed; ")
        assert (await peer.data("read_query", query=query))["rows"] == [[7, "x"]]
        assert (await peer.text("list_tables")).startswith("1 of 1 table")
        error = await peer.error("read_query", query="SELECT id FROM items WHERE place MATCH '[1]' AND k = 1")
        assert "Dimension mismatch" in error
        assert "double quotes" not in error
        assert "id primary key" in await peer.text("describe_table", table_name="items", sample=1)
