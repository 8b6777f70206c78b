"""Two replicas of each server that have the same files, and get no notices of them: what one writes, the clients of
the other hear of all the same."""

import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from servers.filesystem.server import app as filesystem
from servers.filesystem.watch import watcher
from servers.prompts.library import watch as prompts_watch
from servers.prompts.server import app as prompts
from servers.sql import watch as database_watch
from servers.sqlite.server import app as sqlite
from shared import Running, Server
from shared.contracts import Stores
from shared.kit.notices import Notices
from shared.program.options import Group, OptionParser, read_options
from shared.stores import memory
from tests.quiet import quiet
from tests.redis_server import RedisServer
from tests.redis_stores import InRedis
from tests.servers.prompts.folders import SIMPLE
from tests.shared.server.peer import PATIENCE, Peer, talking

UPDATED, LISTED = "notifications/resources/updated", "notifications/resources/list_changed"


def see_nothing(_notices: Notices, stop: threading.Event, seconds: float) -> set[str]:
    stop.wait(seconds)
    return set()


@pytest.fixture(autouse=True)
def blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server has notices, or looks for changes by the clock; that of files sees nothing even where it looks."""
    monkeypatch.setattr(Notices, "arm", lambda *_: False)
    monkeypatch.setattr(Notices, "wait", see_nothing)
    monkeypatch.setattr(watcher, "look_at", lambda *_: (False, False))
    monkeypatch.setattr(prompts_watch, "_SWEEP_SECONDS", 3_600.0)
    monkeypatch.setattr(database_watch, "SWEEP_SECONDS", 3_600.0)
    monkeypatch.setattr(prompts_watch, "_POLL_SECONDS", 3_600.0)


@pytest.fixture(params=["memory", "redis"])
def stores(request: pytest.FixtureRequest) -> Stores:
    return InRedis(request.getfixturevalue("redis_server")) if request.param == "redis" else memory.Stores()


@asynccontextmanager
async def two(app: Server[Any], stores: Stores, *options: object) -> AsyncIterator[tuple[Peer, Peer]]:
    """A client of each of two replicas with these options."""
    async with opened(app, stores, *options) as running, talking(running[0]) as here, talking(running[1]) as there:
        yield here, there


@asynccontextmanager
async def opened(app: Server[Any], stores: Stores, *options: object) -> AsyncIterator[list[Running[Any]]]:
    """Two replicas with these options."""
    parser = OptionParser("test", [Group(app.settings_model.model_fields)])
    settings = read_options(app.settings_model, parser.read([str(option) for option in options]))
    async with app.open(settings, stores=stores) as one, app.open(settings, stores=stores) as other:
        yield [one, other]


async def subscribe(peer: Peer, *uris: str) -> None:
    for uri in uris:
        assert "result" in await peer.request("resources/subscribe", {"uri": uri})


async def told(peer: Peer, *uris: str) -> None:
    """Waits until it was told of these and nothing else, each once."""
    heard = [(await peer.other(UPDATED))["params"]["uri"] for _ in uris]
    await quiet()
    await peer.request("ping")
    heard += [one["params"]["uri"] for one in peer.others if one["method"] == UPDATED]
    assert sorted(heard) == sorted(uris)
    peer.others.clear()


async def test_files_that_another_replica_writes(stores: Stores, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "deep.txt").write_text("old")
    file, sub, glob, deep = (f"{root.as_uri()}/{name}" for name in ("file.txt", "sub", "*.txt", "sub/deep.txt"))
    async with two(filesystem, stores, "--allow-write", root) as (here, there):
        await subscribe(here, file, sub, glob, deep)
        await there.text("write_file", path=str(root / "file.txt"), content="new")
        await here.other(LISTED)
        await told(here, file, glob)
        edits = [{"oldText": "old", "newText": "new"}]
        await there.text("edit_file", path=str(root / "sub" / "deep.txt"), edits=edits)
        await told(here, sub, deep)
        await there.text("move_file", source=str(root / "sub"), destination=str(root / "other"))
        await here.other(LISTED)
        await told(here, sub, deep)
        await there.text("delete_file", path=str(root / "file.txt"))
        await here.other(LISTED)
        await told(here, file, glob)


async def test_rows_that_another_replica_writes(stores: Stores, tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE one (a)")
        connection.execute("CREATE VIEW seen AS SELECT a FROM one")
    async with two(sqlite, stores, "--allow-write", file) as (here, there):
        await subscribe(here, "sqlite:///shop/one", "sqlite:///shop/seen", "sqlite:///shop/schema")
        await here.request("resources/list")
        await quiet()
        await there.text("write_query", query="INSERT INTO one VALUES (1)")
        await told(here, "sqlite:///shop/one", "sqlite:///shop/seen")
        await there.text("write_query", query="CREATE TABLE two (b)")
        await here.other(LISTED)


async def test_insights_are_told_of_by_the_replica_that_has_them(stores: Stores, tmp_path: Path) -> None:
    async with two(sqlite, stores, "--demo") as (here, there):
        await subscribe(here, "memo://insights")
        await there.text("append_insight", insight="It sells.")
        await told(here, "memo://insights")


async def test_prompts_that_another_replica_saves(stores: Stores, tmp_path: Path) -> None:
    (tmp_path / "known.md").write_text(SIMPLE)
    async with two(prompts, stores, "--allow-write", tmp_path) as (here, there):
        await subscribe(here, "prompt://", "prompt://known")
        await there.text("save_prompt", name="new", text=SIMPLE)
        await here.other("notifications/prompts/list_changed")
        await told(here, "prompt://")
        # Told, it has it.
        assert "result" in await here.request("prompts/get", {"name": "new"})
        await there.text("delete_prompt", name="known")
        await told(here, "prompt://", "prompt://known")


async def test_what_a_replica_may_have_missed_is_told_when_it_has_returned(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    file = tmp_path / "file.txt"
    file.touch()
    async with (
        opened(filesystem, InRedis(redis_server), "--allow-write", tmp_path) as (one, other),
        talking(one) as here,
        talking(other) as there,
    ):
        await subscribe(here, file.as_uri())
        replica: Any = one.replica
        replica.link.lose("as the test wants")
        await there.text("write_file", path=str(file), content="missed")
        with anyio.fail_after(PATIENCE):
            while replica.reason is not None:
                await anyio.lowlevel.checkpoint()
        await here.other(LISTED)
        await told(here, file.as_uri())
        await there.text("write_file", path=str(file), content="heard")
        await told(here, file.as_uri())
