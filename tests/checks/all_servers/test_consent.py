"""`--confirm` in every server: each change asks first, and does nothing if the user declines."""

import sqlite3
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import NamedTuple

import pytest

from servers.catalog import load_catalog
from tests.postgres_server import new_database
from tests.servers.peers import FORMS, AskedPeer, Json, text_of
from tests.wire import STATELESS, Wire

PROMPT = "---\ndescription: d\n---\ntext\n"
EDIT = [{"oldText": "a", "newText": "b"}]


class Case(NamedTuple):
    """A server that may change things, and a call of each of its tools that does."""

    options: list[str]
    calls: dict[str, Json]
    resources: tuple[str, ...] = ()
    """Which are read to see whether anything changed."""


CASES = {
    "filesystem": Case(
        ["--allow-write", "{folder}"],
        {
            "write_file": {"path": "a", "content": "x"},
            "edit_file": {"path": "a", "edits": EDIT},
            "create_directory": {"path": "new/er"},
            "undo": {},
            "move_file": {"source": "a", "destination": "b"},
            "copy_file": {"source": "a", "destination": "b"},
            "delete_file": {"path": "a"},
        },
    ),
    "sqlite": Case(
        ["--allow-write", "--files", "{folder}", "--queries", "{folder}", "{folder}/data.db"],
        {
            "write_query": {"query": "INSERT INTO t VALUES (2)"},
            "create_table": {"query": "CREATE TABLE new (a)"},
            "import_csv": {"table": "t", "csv": "a\n3\n"},
            "backup": {},
            "append_insight": {"insight": "rows are few"},
            "clear": {},
        },
        ("memo://insights",),
    ),
    "postgres": Case(
        ["--allow-write", "--files", "{folder}", "--queries", "{folder}", "{database}"],
        {
            "write_query": {"query": "INSERT INTO t VALUES (2)"},
            "create_table": {"query": "CREATE TABLE new (a integer)"},
            "import_csv": {"table": "t", "csv": "a\n3\n"},
            "append_insight": {"insight": "rows are few"},
            "clear": {},
        },
        ("memo://insights", "postgres:///data/t"),
    ),
    "prompts": Case(
        ["--allow-write", "{folder}"],
        {"save_prompt": {"name": "fresh", "text": PROMPT}, "delete_prompt": {"name": "mine"}},
    ),
    "fetch": Case([], {}),
    "everything": Case(
        [],
        {
            "test_trigger_tool_change": {},
            "test_trigger_prompt_change": {},
            "trigger_resource_change": {},
            "trigger_resource_update": {},
        },
        ("test://watched-resource",),
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a").write_text("a")
    (tmp_path / "mine.md").write_text(PROMPT)
    (tmp_path / "clear.sql").write_text("---\ndescription: d\nwritable: true\n---\nDELETE FROM t\n")
    with closing(sqlite3.connect(tmp_path / "data.db")) as connection:
        connection.executescript("CREATE TABLE t (a); INSERT INTO t VALUES (1);")
    return tmp_path


@asynccontextmanager
async def served(name: str, folder: Path, era: str, capabilities: Json, answers: str) -> AsyncIterator[AskedPeer]:
    case, place = CASES[name], ""
    if name == "postgres":
        place = "data=" + new_database("CREATE TABLE t (a integer)", "INSERT INTO t VALUES (1)")
    options = [one.format(folder=folder, database=place) for one in case.options]
    options += ["--confirm"] if case.calls else []
    async with Wire([sys.executable, "-m", f"servers.{name}", *options]) as wire:
        peer = AskedPeer(wire, era, answers)
        wire.answers["elicitation/create"] = peer.answer
        if era != STATELESS:
            await wire.initialize(era, capabilities)
        yield peer


async def standing(peer: AskedPeer, folder: Path, resources: Sequence[str]) -> list[object]:
    """All that a tool of the server could have changed."""
    lists = [await peer.request(f"{kind}/list", {}) for kind in ("tools", "prompts", "resources")]
    read = [await peer.request("resources/read", {"uri": uri}) for uri in resources]
    files = {path.name: path.is_file() and path.read_bytes() for path in sorted(folder.rglob("*"))}
    return [*(one.get("result") for one in [*lists, *read]), {name: files[name] for name in files if "-" not in name}]


@pytest.mark.parametrize("era", ["2025-11-25", STATELESS])
@pytest.mark.parametrize("name", [entry.name for entry in load_catalog().servers])
async def test_each_changing_tool_asks_and_acts_only_with_consent(name: str, era: str, folder: Path) -> None:
    case = CASES[name]
    async with served(name, folder, era, FORMS, "decline accept " * len(case.calls)) as peer:
        tools = (await peer.request("tools/list", {}))["result"]["tools"]
        changing = {one["name"] for one in tools if not one.get("annotations", {}).get("readOnlyHint")}
        assert changing == case.calls.keys()
        for number, (tool, arguments) in enumerate(case.calls.items(), 1):
            (folder / "a").write_text("a")
            (folder / "b").unlink(missing_ok=True)
            before = await standing(peer, folder, case.resources)
            result = await peer.call(tool, **arguments)
            assert (result.get("isError"), text_of(result)[:10]) == (True, "declined: "), tool
            assert await standing(peer, folder, case.resources) == before
            result = await peer.call(tool, **arguments)
            assert "isError" not in result, (tool, result)
            assert len(peer.questions) == 2 * number, tool


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.calls])
async def test_a_client_without_elicitation_gets_an_error_and_changes_nothing(name: str, folder: Path) -> None:
    case = CASES[name]
    async with served(name, folder, "2025-11-25", {}, "") as peer:
        before = await standing(peer, folder, case.resources)
        # Nothing was changed that could be undone.
        for tool, arguments in ((tool, arguments) for tool, arguments in case.calls.items() if tool != "undo"):
            text = await peer.text(tool, **arguments)
            assert text.startswith("cannot_confirm: "), tool
            assert "--confirm" in text
        assert await standing(peer, folder, case.resources) == before
