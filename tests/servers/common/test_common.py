"""Watches of all servers, which end with the subscription or its client, their questions before changes,
and the turns of their clients."""

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
from shared.server.dispatch.turns import Turns
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


RENAME = "---\ndescription: Renames.\nwritable: true\n---\nUPDATE customers SET name = 1"
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
        "--demo --queries queries --files",
        {
            "rename": {},
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
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    app: Server[Any],
    options: str,
    changes: dict[str, dict[str, Any]],
) -> None:
    (tmp_path / "a.md").write_text(PAGE)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries/rename.sql").write_text(RENAME)
    given: list[str | Path] = [*options.split(), tmp_path]
    async with wired_inside(app, "--allow-write", "--confirm", *given, era="2025-11-25") as wire:
        peer = AskedPeer(wire, "2025-11-25", "accept " * ("undo" in changes) + "decline " * len(changes))
        wire.answers["elicitation/create"] = peer.answer
        tools = (await peer.request("tools/list", {}))["result"]["tools"]
        assert {tool["name"] for tool in tools if not tool["annotations"].get("readOnlyHint")} == {*changes}
        if "undo" in changes:
            await peer.text("write_file", path="b", content="to be undone")
        before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
        for tool, arguments in changes.items():
            assert (await peer.text(tool, **arguments)).startswith("declined: "), tool
        assert peer.actions == []
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


PATTERN = {"path": ".", "pattern": "a.md"}
TURNS: list[tuple[Server[Any], str, dict[str, list[tuple[str, dict[str, Any]]]]]] = [
    (
        filesystem,
        "",
        {
            "brief": [("write_file", {"path": "b", "content": "x"}), ("list_directory_with_sizes", {"path": "."})],
            "long": [
                ("read_multiple_files", {"paths": ["a.md"]}),
                ("directory_tree", {"path": "."}),
                ("search_files", PATTERN),
                ("search_content", PATTERN),
                ("edit_file", {"path": "b", "edits": [{"oldText": "x", "newText": "y"}]}),
                ("move_file", {"source": "b", "destination": "c"}),
                ("copy_file", {"source": "c", "destination": "b"}),
                ("delete_file", {"path": "b"}),
                ("undo", {}),
                ("recent_changes", {}),
            ],
        },
    ),
    (prompts, "", {"long": [("search_prompts", {}), ("render_prompt", {"name": "a"})]}),
    (
        sqlite,
        "--demo --files",
        {
            "reading": [
                ("list_tables", {}),
                ("describe_table", {"table_name": "customers"}),
                ("describe_database", {}),
                ("read_query", {"query": "SELECT count(*) FROM customers"}),
                ("explain_query", {"query": "SELECT 1"}),
                ("export", {"query": "SELECT 1"}),
                ("backup", {}),
            ],
            "writing": [
                *(("write_query", {"query": "DELETE FROM t", "dry_run": dry_run}) for dry_run in (True, False)),
                *(("import_csv", {"table_name": "t", "csv": "n\n", "preview": preview}) for preview in (True, False)),
                ("create_table", {"query": "CREATE TABLE t2 (n)"}),
            ],
        },
    ),
]


@pytest.mark.parametrize(("app", "options", "calls"), TURNS, ids=["filesystem", "prompts", "sqlite"])
async def test_long_work_waits_for_the_turn_of_its_client(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    app: Server[Any],
    options: str,
    calls: dict[str, list[tuple[str, dict[str, Any]]]],
) -> None:
    taken: list[Turns] = []
    acquire = Turns.acquire

    def take(turns: Turns, client: str) -> Any:
        taken.append(turns)
        return acquire(turns, client)

    monkeypatch.setattr(Turns, "acquire", take)
    (tmp_path / "a.md").write_text(PAGE)
    async with inside(app, "--allow-write", *options.split(), tmp_path) as peer:
        running = peer.running
        queues = {"long": running.calls.turns, "brief": running.calls.brief_turns}
        if app is sqlite:
            queues |= dict(zip(("reading", "writing"), running.state.turns["demo"], strict=True))
            await peer.call("create_table", query="CREATE TABLE t (n)")
        for queue, made in calls.items():
            for tool, arguments in made:
                taken.clear()
                assert not (await peer.call(tool, **arguments)).get("isError"), tool
                assert (tool, taken) == (tool, [queues[queue]])
