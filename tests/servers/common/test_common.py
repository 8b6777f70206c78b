"""Watches of all servers, which end with the subscription or its client."""

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
from tests.servers.peers import inside
from tests.wire import PATIENCE

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
    (tmp_path / "a.md").write_text("---\ndescription: A.\n---\nA.")
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
