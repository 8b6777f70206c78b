"""Watches of all servers, which end with the subscription or its client, and their questions before changes."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from servers.filesystem.server import app as filesystem
from servers.prompts.server import app as prompts
from servers.sqlite.server import app as sqlite
from shared import Server
from tests.servers.peers import AskedPeer, inside, wired_inside
from tests.wire import PATIENCE

PAGE = "---\ndescription: A.\n---\nA."
SERVERS: dict[str, tuple[Server[Any], str, Callable[[Any], int]]] = {
    "filesystem": (filesystem, "file://{folder}/a.md", lambda state: state.watcher.health["watched"]),
    "a glob": (filesystem, "file://{folder}/*.md", lambda state: state.watcher.health["watched"]),
    "sqlite": (sqlite, "sqlite:///data/t", lambda state: state.watch.health["watched"]),
    "prompts": (prompts, "prompt://a", lambda state: len(state.subscribed)),
}


@pytest.mark.parametrize("leaves", [False, True], ids=["it ends", "the client leaves"])
@pytest.mark.parametrize(("app", "uri", "count"), SERVERS.values(), ids=SERVERS)
async def test_watching_ends_with_the_last_subscription(
    tmp_path: Path, app: Server[Any], uri: str, count: Callable[[Any], int], leaves: bool
) -> None:
    (tmp_path / "a.md").write_text(PAGE)
    with closing(sqlite3.connect(tmp_path / "data.db")) as connection:
        connection.execute("CREATE TABLE t (n)")
    uri = uri.format(folder=tmp_path)
    async with inside(app, tmp_path / "data.db" if app is sqlite else tmp_path) as peer:
        assert (await peer.request("resources/subscribe", uri=uri))["result"] == {}
        assert count(peer.running.state) == 1
        if leaves:
            await peer.client.end.aclose()
        else:
            assert (await peer.request("resources/unsubscribe", uri=uri))["result"] == {}
        with anyio.fail_after(PATIENCE):
            while count(peer.running.state):
                await anyio.sleep(0.01)


# What each tool that may change something is called with, beside the file a.md and the database of samples.
CHANGES: list[tuple[Server[Any], str, dict[str, dict[str, Any]]]] = [
    (
        filesystem,
        "",
        {
            "write_file": {"path": "new", "content": "x"},
            "edit_file": {"path": "a.md", "edits": [{"oldText": "---\nA.", "newText": "B."}]},
            "create_directory": {"path": "new"},
            "move_file": {"source": "a.md", "destination": "new"},
            "copy_file": {"source": "a.md", "destination": "new"},
            "delete_file": {"path": "a.md"},
            "undo": {},
        },
    ),
    (prompts, "", {"save_prompt": {"name": "new", "text": PAGE}, "delete_prompt": {"name": "a"}}),
    (
        sqlite,
        "--demo --files",
        {
            "append_insight": {"insight": "x"},
            "write_query": {"query": "UPDATE customers SET name = 1"},
            "create_table": {"query": "CREATE TABLE new (n)"},
            "import_csv": {"table_name": "new", "csv": "n\n1\n"},
            "backup": {},
        },
    ),
]


@pytest.mark.parametrize(("app", "options", "changes"), CHANGES, ids=["filesystem", "prompts", "sqlite"])
async def test_confirm_asks_before_each_change(
    tmp_path: Path, app: Server[Any], options: str, changes: dict[str, dict[str, Any]]
) -> None:
    (tmp_path / "a.md").write_text(PAGE)
    given: list[str | Path] = [*options.split(), tmp_path]
    async with wired_inside(app, "--allow-write", "--confirm", *given, era="2025-11-25") as wire:
        peer = AskedPeer(wire, "2025-11-25", "accept " * ("undo" in changes) + "decline " * len(changes))
        wire.answers["elicitation/create"] = peer.answer
        tools = (await peer.request("tools/list", {}))["result"]["tools"]
        assert {tool["name"] for tool in tools if not tool["annotations"].get("readOnlyHint")} == {*changes}
        if "undo" in changes:
            await peer.text("write_file", path="b", content="to be undone")
        before = {path: path.read_bytes() for path in tmp_path.iterdir()}
        for tool, arguments in changes.items():
            assert (await peer.text(tool, **arguments)).startswith("declined: "), tool
        assert peer.actions == []
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
