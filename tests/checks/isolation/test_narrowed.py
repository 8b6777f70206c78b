"""Principals with different parts of one server: the part of one does not exist for the other."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from servers.common.sql.settings import Narrowing as Databases
from servers.filesystem.server import app as filesystem
from servers.filesystem.settings import Narrowing as Directories
from servers.filesystem.settings import Settings as FilesystemSettings
from servers.prompts.server import app as prompts
from servers.prompts.settings import Narrowing as Libraries
from servers.prompts.settings import Settings as PromptsSettings
from servers.sqlite.server import app as sqlite
from servers.sqlite.settings import Settings as SqliteSettings
from shared import Server
from shared.auth.tokens import StaticTokens
from shared.auth.tokens_file import TokensFile, digest_of
from shared.extensions.narrowing import narrowing
from tests.checks.isolation.parties import TOKENS, Party, parties_at
from tests.shared.transports.http.http_wire import Json, events

NAMES = ("alice", "bob")
every_era = pytest.mark.parametrize("lasts", [True, False], ids=["session", "stateless"])


@asynccontextmanager
async def parties_of(
    app: Server[Any], settings: BaseModel, own: dict[str, BaseModel], lasts: bool, folder: Path
) -> AsyncIterator[list[Party]]:
    """Alice and Bob, whose tokens have these names, with settings of their own."""
    tokens = folder / "tokens.toml"
    digests = {name: digest_of(token) for name, token in zip(NAMES, TOKENS, strict=True)}
    tokens.write_text("".join(f'[{name}]\ndigest = "{digest}"\n' for name, digest in digests.items()))
    tokens.chmod(0o600)
    async with (
        app.open(settings, extensions=[narrowing(own)]) as running,
        parties_at(running, authenticator=StaticTokens((), TokensFile(tokens))) as given,
    ):
        yield [await one.opened() if lasts else one for one in given]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in NAMES:
        (tmp_path / "all" / name).mkdir(parents=True)
        (tmp_path / "all" / name / "note.md").write_text(f"---\ndescription: of {name}\n---\nsecret of {name}\n")
        with closing(sqlite3.connect(tmp_path / "all" / f"{name}.db")) as connection:
            connection.executescript(f"CREATE TABLE {name}_t (n); INSERT INTO {name}_t VALUES ('secret of {name}');")
    return tmp_path


# The filesystem server

OF_FILES: dict[str, Json] = {
    "read_text_file": {"path": "{theirs}/note.md"},
    "read_multiple_files": {"paths": ["{theirs}/note.md"]},
    "get_file_info": {"path": "{theirs}/note.md"},
    "list_directory": {"path": "{theirs}"},
    "directory_tree": {"path": "{all}"},
    "search_files": {"path": "{all}", "pattern": "**"},
    "search_content": {"path": "{all}", "pattern": "secret"},
    "list_allowed_directories": {},
    "changes": {"path": "{theirs}"},
    "write_file": {"path": "{theirs}/note.md", "content": "x"},
    "edit_file": {"path": "{theirs}/note.md", "edits": [{"oldText": "secret", "newText": "x"}]},
    "create_directory": {"path": "{theirs}/new"},
    "move_file": {"source": "{theirs}/note.md", "destination": "{own}/note2.md"},
    "copy_file": {"source": "{theirs}/note.md", "destination": "{own}/note2.md"},
    "delete_file": {"path": "{theirs}/note.md"},
}


@asynccontextmanager
async def of_files(folder: Path, lasts: bool) -> AsyncIterator[list[Party]]:
    settings = FilesystemSettings(roots=[folder / "all"], allow_write=True)
    own = {name: settings.narrow(Directories(roots=[folder / "all" / name])) for name in NAMES}
    async with parties_of(filesystem, settings, own, lasts, folder) as given:
        yield given


def filled(arguments: Any, folder: Path) -> Any:
    """The arguments as Bob would send them."""
    if isinstance(arguments, dict):
        return {name: filled(value, folder) for name, value in arguments.items()}
    if isinstance(arguments, list):
        return [filled(value, folder) for value in arguments]
    there = folder / "all"
    return arguments.format(theirs=there / "alice", own=there / "bob", all=there)


def tells_hers(said: object) -> bool:
    """Whether it tells anything of hers but the path that was asked for."""
    return "of alice" in str(said)


@every_era
async def test_a_principal_reads_only_its_files(folder: Path, lasts: bool) -> None:
    note = folder / "all" / "alice" / "note.md"
    before = note.read_text()
    async with of_files(folder, lasts) as (alice, bob):
        assert "secret of alice" in await alice.text("read_text_file", path=str(note))
        for tool, arguments in OF_FILES.items():
            result = await bob.call(tool, **filled(arguments, folder))
            assert not tells_hers(result), tool
            if "{theirs}" in str(arguments) and tool != "read_multiple_files":
                assert result.get("isError"), tool
        assert "alice" not in await bob.text("list_allowed_directories")
        assert "error" in await bob.ask("resources/read", {"uri": note.as_uri()})
        assert "alice" not in str((await bob.ask("resources/list"))["result"])
        assert sorted(path.name for path in note.parent.iterdir()) == ["note.md"]
        assert note.read_text() == before


@every_era
async def test_a_principal_sees_only_changes_of_its_files(folder: Path, lasts: bool) -> None:
    async with of_files(folder, lasts) as (alice, bob):
        hers = (await alice.text("changes")).rpartition("[cursor: ")[2].rstrip("]")
        his = (await bob.text("changes")).rpartition("[cursor: ")[2].rstrip("]")
        await alice.call("write_file", path=str(folder / "all" / "alice" / "fresh"), content="x")
        assert "fresh" in await alice.text("changes", cursor=hers, wait=10)
        for cursor in (hers, his):
            assert "fresh" not in await bob.text("changes", cursor=cursor)


@every_era
async def test_a_principal_subscribes_only_to_its_files(folder: Path, lasts: bool) -> None:
    note = (folder / "all" / "alice" / "note.md").as_uri()
    async with of_files(folder, lasts) as (_, bob):
        if lasts:
            assert "error" in await bob.ask("resources/subscribe", {"uri": note})
            return
        message, headers = bob.message("subscriptions/listen", {"notifications": {"resourceSubscriptions": [note]}})
        async with bob.site.stream(message, headers) as response:
            assert note not in str(await anext(events(response)))


# The SQLite server


@every_era
async def test_a_principal_has_only_its_databases(folder: Path, lasts: bool) -> None:
    settings = SqliteSettings(databases=[folder / "all" / f"{name}.db" for name in NAMES], allow_write=True)
    own = {name: settings.narrow(Databases(databases=[name])) for name in NAMES}
    async with parties_of(sqlite, settings, own, lasts, folder) as (alice, bob):
        query = {"query": "SELECT n FROM alice_t"}
        assert "secret of alice" in await alice.text("read_query", **query)
        for tool, arguments in {
            "read_query": query,
            "write_query": {"query": "DELETE FROM alice_t"},
            "export": query,
            "explain_query": query,
            "describe_table": {"table": "alice_t"},
            "describe_database": {},
            "list_tables": {},
            "create_table": {"query": "CREATE TABLE mine (a)"},
            "import_csv": {"table": "alice_t", "csv": "n\n1\n"},
        }.items():
            result = await bob.call(tool, **arguments, database="alice")
            assert result["isError"], tool
            assert "alice_t (" not in str(result), tool
            assert "secret of alice" not in str(result), tool
        for uri in ("sqlite:///alice/schema", "sqlite:///alice/alice_t"):
            assert "error" in await bob.ask("resources/read", {"uri": uri})
        assert "alice" not in str((await bob.ask("resources/list"))["result"])
        reference = {"type": "ref/resource", "uri": "sqlite:///{db}/{table}"}
        asked = {"ref": reference, "argument": {"name": "db", "value": ""}}
        assert (await bob.ask("completion/complete", asked))["result"]["completion"]["values"] == ["bob"]


# The prompt library


@every_era
async def test_a_principal_has_only_its_prompts(folder: Path, lasts: bool) -> None:
    for name in NAMES:
        (folder / "all" / name / "note.md").rename(folder / "all" / name / f"note-{name}.md")
    settings = PromptsSettings(libraries=[folder / "all" / name for name in NAMES])
    own = {name: settings.narrow(Libraries(libraries=[folder / "all" / name])) for name in NAMES}
    async with parties_of(prompts, settings, own, lasts, folder) as (alice, bob):
        assert "secret of alice" in str(await alice.ask("prompts/get", {"name": "note-alice"}))
        assert "error" in await bob.ask("prompts/get", {"name": "note-alice"})
        assert "alice" not in str((await bob.ask("prompts/list"))["result"])
        assert "of alice" not in await bob.text("search_prompts", query="note")
        assert "secret of alice" not in await bob.text("render_prompt", name="note-alice")
        assert "error" in await bob.ask("resources/read", {"uri": "prompt://note-alice"})
