"""Canned queries through the protocol: tools that appear and disappear with their files."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from servers.sqlite.server import app
from tests.servers import peers
from tests.servers.peers import InnerPeer, Peer
from tests.servers.sqlite.serving import inside
from tests.wire import STATELESS

CHANGED = "notifications/tools/list_changed"
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

VALUES = (
    ("integer", 2**62, {"type": "integer", "value": str(2**62)}),
    ("number", 1, 1.0),
    ("string", "é'", "é'"),
    ("boolean", True, 1),
    ("blob", "AP8=", {"type": "blob", "bytes": 2, "base64": "AP8="}),
)
# Invalid files, and the reason in the log.
WRONG = {
    "writes": (RENAME, "the database 'data' is read-only"),
    "deletes": ("description: x\n---\nDELETE FROM numbers", "the statement is not allowed"),
    "syntax": ("description: x\n---\nSELEC 1", "syntax error"),
    "two": ("description: x\n---\nSELECT 1; SELECT 2", "more than one statement"),
    "tool": (
        "description: x\nname: read_query\n---\nSELECT 1",
        "this server already has a built-in tool named 'read_query'",
    ),
    "twice": ("description: x\nname: by_name\n---\nSELECT 1", "another file has a query called 'by_name'"),
    "database": ("description: x\ndatabase: other\n---\nSELECT 1", "there is no database with that name"),
}


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    folder = tmp_path / "queries"
    folder.mkdir()
    (folder / "by_name.sql").write_text(BY_NAME)
    return folder


def simple(sql: str, *lines: str) -> str:
    return "\n".join(("---", "description: Something.", *lines, "---", sql))


async def custom_tools(peer: Peer) -> set[str]:
    """The names of the tools that are not built in."""
    tools = (await peer.request("tools/list"))["result"]["tools"]
    return {tool["name"] for tool in tools} - {tool.name for tool in app.tools.all()}


async def wait_for_list_change(peer: InnerPeer) -> None:
    """Wait for exactly one tools/list_changed."""
    await peer.client.other(CHANGED)
    assert peer.client.others == []


async def test_a_query_file_becomes_a_tool_with_arguments_rows_and_cursors(file: Path, queries: Path) -> None:
    async with inside("--queries", queries, file) as peer:
        tools = (await peer.request("tools/list"))["result"]["tools"]
        result = await peer.call("by_name", least=998)
        first = await peer.data("by_name", least=990, max_rows=4)
        rest = await peer.data("by_name", least=990, cursor=first["next_cursor"])
        other = await peer.error("by_name", least=991, cursor=first["next_cursor"])
        assert "least" in await peer.error("by_name", least="one")
        assert "did you mean 'least'?" in await peer.error("by_name", last=1)
    (tool,) = [tool for tool in tools if tool["name"] == "by_name"]
    assert (tool["description"], tool["inputSchema"]["required"]) == ("Numbers from one on.", ["least"])
    assert tool["inputSchema"]["properties"]["least"] == {"type": "integer", "description": "the first one"}
    assert list(tool["inputSchema"]["properties"]) == ["least", "name", "max_rows", "cursor"]
    assert tool["annotations"]["readOnlyHint"]
    assert tool["execution"] == {"taskSupport": "optional"}
    assert '[998,"number 998"]\n[999,"number 999"]' in result["content"][0]["text"]
    assert [row[0] for row in first["rows"] + rest["rows"]] == list(range(990, 1_000))
    assert other.startswith("bad_cursor")


async def test_parameters_of_each_type_are_passed_to_the_query(file: Path, tmp_path: Path) -> None:
    for kind, *_ in VALUES:
        (tmp_path / f"echo_{kind}.sql").write_text(simple("SELECT :a AS a", f"parameters: {{a: {{type: {kind}}}}}"))
    async with inside("--queries", tmp_path, file) as peer:
        rows = [(await peer.data(f"echo_{kind}", a=value))["rows"] for kind, value, _ in VALUES]
    assert rows == [[[expected]] for _, _, expected in VALUES]


async def test_a_writable_query_commits_and_notifies_subscribers(file: Path, queries: Path) -> None:
    (queries / "rename.sql").write_text(RENAME)
    async with inside("--allow-write", "--queries", queries, file) as peer:
        await peer.request("resources/subscribe", uri="sqlite:///data/numbers")
        data = await peer.data("rename", n=1, name="one")
        assert data["committed"]
        (done,) = data["statements"]
        assert (done["affected"], done["rows"], "truncated" in done) == (1, [[1, "one"]], False)
        update = await peer.client.other("notifications/resources/updated")
        assert update["params"]["uri"] == "sqlite:///data/numbers"
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT name FROM numbers WHERE n = 1").fetchone() == ("one",)


async def test_a_failed_writable_query_changes_nothing(file: Path, queries: Path) -> None:
    (queries / "move.sql").write_text(simple("UPDATE numbers SET n = 5 WHERE n IN (4, 6)", "writable: true"))
    async with inside("--allow-write", "--queries", queries, file) as peer:
        for _ in range(2):
            assert (await peer.error("move")).startswith("constraint")
        assert (await peer.data("read_query", query="SELECT count(*) FROM numbers"))["rows"] == [[1_000]]


async def test_invalid_query_files_are_skipped_with_a_log_message(
    file: Path, queries: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name, (text, _) in WRONG.items():
        (queries / f"{name}.sql").write_text(f"---\n{text}" if text.startswith("description") else text)
    os.mkfifo(queries / "a_pipe.sql")
    (queries / "a_link.sql").symlink_to("nowhere")
    (queries / "a_folder.sql").mkdir()
    async with inside("--queries", queries, file) as peer:
        assert await custom_tools(peer) == {"by_name"}
    messages = {
        name: [line for line in caplog.messages if line.startswith(f"--queries: {name}.sql: ")] for name in WRONG
    }
    assert {name for name, (_, reason) in WRONG.items() if reason not in messages[name][0]} == set()
    assert all(len(lines) == 1 and lines[0].endswith("left out") for lines in messages.values())
    assert "a_pipe.sql: it is not a regular file; left out" in caplog.text
    assert str(file.parent) not in "".join(caplog.messages)


async def test_a_new_query_file_sends_tools_list_changed(file: Path, queries: Path) -> None:
    async with inside("--queries", queries, file) as peer:
        (queries / "a.sql").write_text(simple("SELECT 'new'"))
        await wait_for_list_change(peer)
        assert await custom_tools(peer) == {"by_name", "a"}


@pytest.mark.slow
@pytest.mark.parametrize("era", ["2025-11-25", STATELESS])
async def test_each_new_changed_and_removed_query_file_sends_one_list_changed(
    file: Path, queries: Path, era: str
) -> None:
    async with peers.inside(app, "--queries", queries, file, era=era) as peer:
        if era == STATELESS:
            await peer.client.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
            await peer.client.other("notifications/subscriptions/acknowledged")
        for name in "abc":
            (queries / f"{name}.sql").write_text(simple(f"SELECT '{name}'"))
        await wait_for_list_change(peer)
        assert await custom_tools(peer) == {"by_name", "a", "b", "c"}
        (queries / "a.sql").write_text(simple("SELECT 'new'"))
        await wait_for_list_change(peer)
        assert (await peer.data("a"))["rows"] == [["new"]]
        (queries / "b.sql").unlink()
        await wait_for_list_change(peer)
        assert await custom_tools(peer) == {"by_name", "a", "c"}


@pytest.mark.slow
async def test_an_invalid_edit_keeps_the_last_valid_query_with_a_log_message(
    file: Path, queries: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with inside("--queries", queries, file) as peer:
        (queries / "by_name.sql").write_text("SELECT")
        with anyio.fail_after(30):
            while "its last valid version stays in use" not in caplog.text:
                await anyio.sleep(0.01)
        assert "by_name.sql: it must begin with front matter" in caplog.text
        assert (await peer.data("by_name", least=999))["rows"] == [[999, "number 999"]]


@pytest.mark.slow
async def test_a_query_of_a_missing_table_appears_with_the_table(
    file: Path, queries: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (queries / "later.sql").write_text(simple("SELECT * FROM later"))
    async with inside("--queries", queries, file) as peer:
        assert await custom_tools(peer) == {"by_name"}
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("CREATE TABLE later (x)")
        await wait_for_list_change(peer)
        assert await custom_tools(peer) == {"by_name", "later"}
    assert caplog.text.count("later.sql") == 1
