"""Canned queries through the front door: tools that come and go with their files."""

import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from servers.sqlite.server import app
from tests.servers.sqlite.serving import ERAS, Peer, inside, served
from tests.wire import Wire, with_envelope

pytestmark = pytest.mark.slow

BY_NAME = """---
description: Numbers from one on.
parameters:
  least: {type: integer, description: the first one}
  name: {type: string, optional: true}
---
SELECT n, name FROM numbers WHERE n >= :least AND (:name IS NULL OR name = :name) ORDER BY n
"""
RENAME = """---
description: Gives a number another name.
writable: true
parameters:
  n: {type: integer}
  name: {type: string}
---
UPDATE numbers SET name = :name WHERE n = :n RETURNING n, name
"""


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    folder = tmp_path / "queries"
    folder.mkdir()
    (folder / "by_name.sql").write_text(BY_NAME)
    return folder


def simple(sql: str, *lines: str) -> str:
    return "\n".join(("---", "description: Something.", *lines, "---", sql))


async def names(peer: Peer) -> set[str]:
    """The tools that are no built-in ones."""
    tools = (await peer.request("tools/list"))["result"]["tools"]
    return {tool["name"] for tool in tools} - {tool.name for tool in app.tools.all()}


async def changed(peer: Peer) -> None:
    """Waits until it is told that there are other tools."""
    with anyio.fail_after(30):
        while not peer.wire.notifications:
            peer.wire.notifications.append(await peer.wire.receive())
    assert [one["method"] for one in peer.wire.notifications] == ["notifications/tools/list_changed"]
    peer.wire.notifications.clear()


async def said(wire: Wire, text: str) -> None:
    """Waits until the server has written that for people."""
    with anyio.fail_after(30):
        while text not in wire.stderr:
            await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("era", ERAS)
async def test_a_file_is_a_tool(file: Path, queries: Path, era: str) -> None:
    async with served("--queries", queries, file, era=era) as peer:
        tools = (await peer.request("tools/list"))["result"]["tools"]
        result = await peer.call("by_name", least=998)
    (tool,) = [tool for tool in tools if tool["name"] == "by_name"]
    assert (tool["description"], tool["inputSchema"]["required"]) == ("Numbers from one on.", ["least"])
    assert tool["inputSchema"]["properties"]["least"] == {"type": "integer", "description": "the first one"}
    assert list(tool["inputSchema"]["properties"]) == ["least", "name", "max_rows", "cursor"]
    assert '[998,"number 998"]\n[999,"number 999"]' in result["content"][0]["text"]
    if era >= "2025-03-26":
        assert tool["annotations"]["readOnlyHint"]


async def test_its_rows_are_limited_and_go_on_like_those_of_read_query(file: Path, queries: Path) -> None:
    async with inside("--queries", queries, file) as peer:
        first = await peer.data("by_name", least=990, max_rows=4)
        rest = await peer.data("by_name", least=990, cursor=first["next_cursor"])
        other = await peer.error("by_name", least=991, cursor=first["next_cursor"])
    assert [row[0] for row in first["rows"] + rest["rows"]] == list(range(990, 1_000))
    assert other.startswith("bad_cursor")


async def test_its_arguments_are_checked(file: Path, queries: Path) -> None:
    async with inside("--queries", queries, file) as peer:
        assert "least" in await peer.error("by_name", least="1")
        assert "did you mean 'least'?" in await peer.error("by_name", last=1)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("integer", 2**62, {"type": "integer", "value": str(2**62)}),
        ("number", 1, 1.0),
        ("string", "é'", "é'"),
        ("boolean", True, 1),
        ("blob", "AP8=", {"type": "blob", "bytes": 2, "base64": "AP8="}),
    ],
)
async def test_a_parameter_of_each_type(file: Path, tmp_path: Path, kind: str, value: Any, expected: Any) -> None:
    (tmp_path / "echo.sql").write_text(simple("SELECT :a AS a", f"parameters: {{a: {{type: {kind}}}}}"))
    async with inside("--queries", tmp_path, file) as peer:
        assert (await peer.data("echo", a=value))["rows"] == [[expected]]


async def test_what_writes_changes_in_one_transaction_and_tells_subscribers(file: Path, queries: Path) -> None:
    (queries / "rename.sql").write_text(RENAME)
    async with served("--allow-write", "--queries", queries, file) as peer:
        await peer.request("resources/subscribe", uri="sqlite:///data/numbers")
        data = await peer.data("rename", n=1, name="one")
        assert data["committed"]
        (done,) = data["statements"]
        assert (done["affected"], done["rows"], "truncated" in done) == (1, [[1, "one"]], False)
        if not peer.wire.notifications:
            peer.wire.notifications.append(await peer.wire.receive())
        assert peer.wire.notifications[0]["params"]["uri"] == "sqlite:///data/numbers"
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT name FROM numbers WHERE n = 1").fetchone() == ("one",)


async def test_what_fails_to_write_changes_nothing(file: Path, queries: Path) -> None:
    (queries / "move.sql").write_text(simple("UPDATE numbers SET n = 5 WHERE n IN (4, 6)", "writable: true"))
    async with inside("--allow-write", "--queries", queries, file) as peer:
        for _ in range(2):
            assert (await peer.error("move")).startswith("constraint")
        assert (await peer.data("read_query", query="SELECT count(*) FROM numbers"))["rows"] == [[1_000]]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT 1", "it does not begin with front matter"),
        (RENAME, "the database 'data' may only be read"),
        (simple("DELETE FROM numbers"), "the statement is not allowed"),
        (simple("SELEC 1"), "syntax error"),
        (simple("SELECT 1; SELECT 2"), "one statement at a time"),
        (simple("SELECT 1", "name: read_query"), "this server has a tool called 'read_query'"),
        (simple("SELECT 1", "name: by_name"), "another file has a query called 'by_name'"),
        (simple("SELECT 1", "database: other"), "there is no database of that name"),
    ],
)
async def test_a_file_that_is_wrong_is_left_out_and_said(file: Path, queries: Path, text: str, reason: str) -> None:
    (queries / "wrong.sql").write_text(text)
    async with served("--queries", queries, file) as peer:
        assert await names(peer) == {"by_name"}
        await said(peer.wire, reason)
        assert "--queries: wrong.sql: " in peer.wire.stderr
        assert "left out" in peer.wire.stderr
        assert str(file.parent) not in peer.wire.stderr


@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
async def test_files_that_come_change_and_go_are_told_once_each(file: Path, queries: Path, era: str) -> None:
    async with served("--queries", queries, file, era=era) as peer:
        if peer.stateless:
            params = with_envelope({"notifications": {"toolsListChanged": True}})
            await peer.wire.send({"jsonrpc": "2.0", "id": "L", "method": "subscriptions/listen", "params": params})
            await peer.wire.receive()
        for name in "abc":
            (queries / f"{name}.sql").write_text(simple(f"SELECT '{name}'"))
        await changed(peer)
        assert await names(peer) == {"by_name", "a", "b", "c"}
        (queries / "a.sql").write_text(simple("SELECT 'new'"))
        await changed(peer)
        assert (await peer.data("a"))["rows"] == [["new"]]
        (queries / "b.sql").unlink()
        await changed(peer)
        assert await names(peer) == {"by_name", "a", "c"}


async def test_a_broken_edit_keeps_what_was_there_and_says_so(file: Path, queries: Path) -> None:
    async with served("--queries", queries, file) as peer:
        (queries / "by_name.sql").write_text("SELECT")
        await said(peer.wire, "by_name.sql: it does not begin with front matter")
        assert "what it had before stays" in peer.wire.stderr
        assert (await peer.data("by_name", least=999))["rows"] == [[999, "number 999"]]


async def test_a_query_of_a_table_that_comes_later_comes_with_it(file: Path, queries: Path) -> None:
    (queries / "later.sql").write_text(simple("SELECT * FROM later"))
    async with served("--queries", queries, file) as peer:
        assert await names(peer) == {"by_name"}
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("CREATE TABLE later (x)")
        await changed(peer)
        assert await names(peer) == {"by_name", "later"}
    assert peer.wire.stderr.count("later.sql") == 1


async def test_a_directory_that_is_none_ends_the_start(file: Path) -> None:
    async with Wire([sys.executable, "-m", "servers.sqlite", "--queries", str(file), str(file)]) as wire:
        assert await wire.wait() == 2
    assert "is not a directory" in wire.stderr


async def test_what_is_no_regular_file_is_left_out_and_hides_no_other(file: Path, queries: Path) -> None:
    os.mkfifo(queries / "a_pipe.sql")
    (queries / "a_link.sql").symlink_to("nowhere")
    (queries / "a_folder.sql").mkdir()
    async with served("--queries", queries, file) as peer:
        assert await names(peer) == {"by_name"}
        await said(peer.wire, "a_pipe.sql: it is not a regular file; left out")
