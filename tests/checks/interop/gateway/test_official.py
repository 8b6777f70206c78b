"""Official clients through the gateway: the rows that they go through at our servers, with something in between.

Behind the joined entry are all of our servers and one of others, so that a client has everything through one door;
the other ways lead to each server by itself. Nothing of a column is shared with another one but the servers.
"""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
from anyio import to_thread

from tests.checks.interop.gateway.ways import ANYWHERE, BUNDLE, aged, ready
from tests.checks.interop.others.test_others import SERVERS, SILENT, drive, holes_of, require, rows_of, task_of
from tests.checks.interop.peers import DATABASE, LIBRARY, ROOT, STATELESS, command
from tests.wire import serving, start_http

pytestmark = pytest.mark.timeout(900)  # the first one may have to build an environment

WITHOUT = {
    "joined": {"opens": "it has a name of its own", "lists templates": "there are those of other servers as well"},
    "old": {"data that is no object": "before 2026-07-28 data is an object, so the server says it as text"},
}
"""What is not so through a way, or of a server of that age, and why."""

Reach = dict[str, dict[str, object]]


@dataclass(frozen=True)
class Column:
    """A client, the era that it chooses, and the way."""

    peer: str
    mode: str
    way: str
    age: str = "new"

    @property
    def rows(self) -> set[str]:
        """What has to pass."""
        known = rows_of(self.peer, self.way.split()[0], self.mode)
        over = "stdio" if self.way.endswith("stdio") else self.way
        without = {row for what in (self.way.split()[0], self.age) for row in WITHOUT.get(what, {})}
        return set(known) - holes_of(self.peer, over) - without - {SILENT}


COLUMNS = (
    Column("sdk1", "legacy", "connect stdio"),
    Column("sdk2", STATELESS, "connect stdio", "old"),
    Column("ts2", STATELESS, "connect stdio", "old"),
    Column("ts2", "2025-06-18", "connect stdio"),
    Column("ts1", "legacy", "expose"),
    Column("sdk2", "legacy", "expose"),
    Column("ts2", STATELESS, "expose"),
    Column("sdk1", "legacy", "joined stdio"),
    Column("ts2", STATELESS, "joined stdio"),
    Column("ts1", "legacy", "joined http"),
    Column("sdk2", STATELESS, "joined http"),
)


def joined_servers(folder: Path, scratch: Path) -> Path:
    """The configuration of a bundle that has all of them: ours, and one that a command starts."""
    servers = {
        "filesystem": {"roots": [str(folder)]},
        "sqlite": {"databases": [str(folder / DATABASE)], "allow-write": True},
        "fetch": {"allow-private": ["127.0.0.1:*"]},
        "prompts": {"libraries": [str(folder / LIBRARY)], "starter": True},
        "everything": {},
        "bench": {"command": command("bench", folder), "cwd": str(ROOT)},
    }
    file = scratch / "bundle.yaml"
    file.write_text(json.dumps({"servers": servers}))  # which is YAML as well
    return file


@asynccontextmanager
async def reached(column: Column, folder: Path, scratch: Path) -> AsyncIterator[Reach]:
    """How each server is reached by a column."""
    async with AsyncExitStack() as stack:
        match column.way:
            case "joined stdio":
                words = [*BUNDLE, "run", "--join", "--config", str(joined_servers(folder, scratch))]
                yield {server: {"command": words, "cwd": str(ROOT)} for server in SERVERS}
            case "joined http":
                words = [*BUNDLE, "serve", "--join", *ANYWHERE, "--config", str(joined_servers(folder, scratch))]
                base = await stack.enter_async_context(serving(words))
                await ready(base)
                yield {server: {"url": f"{base}/mcp", "token": None} for server in SERVERS}
            case "connect stdio":
                yield {server: await _connect(stack, aged(column.age, command(server, folder))) for server in SERVERS}
            case _:
                yield {server: await _expose(stack, aged(column.age, command(server, folder))) for server in SERVERS}


async def _connect(stack: AsyncExitStack, server: list[str]) -> dict[str, object]:
    base = await stack.enter_async_context(start_http(server))
    return {"command": [*BUNDLE, "connect", f"{base}/mcp"], "cwd": str(ROOT)}


async def _expose(stack: AsyncExitStack, server: list[str]) -> dict[str, object]:
    base = await stack.enter_async_context(serving([*BUNDLE, "expose", *ANYWHERE, "--", *server]))
    return {"url": f"{base}/mcp", "token": None}


@pytest.fixture
def key(folder: Path) -> Iterator[str]:
    """A name that no other column uses, with the file of that name."""
    key = f"k{uuid4().hex[:12]}"
    (folder / f"{key}.txt").write_text("before\n")
    yield key
    for ending in ("txt", "new"):
        (folder / f"{key}.{ending}").unlink(missing_ok=True)


@pytest.mark.parametrize(
    "column",
    [pytest.param(one, id=f"{one.peer}-{one.mode}-{one.way}-{one.age}".replace(" ", "-")) for one in COLUMNS],
)
async def test_an_official_client_uses_every_feature(
    column: Column, folder: Path, site: str, key: str, tmp_path: Path
) -> None:
    driver = await to_thread.run_sync(require, column.peer)
    async with reached(column, folder, tmp_path) as servers:
        errors = tmp_path / "stderr"
        task = task_of(column.mode, column.way, servers, folder=folder, site=site, key=key, errors=errors)
        found = await to_thread.run_sync(drive, [*driver, task])
    wrong = {row: found.get(row, found.get("driver", "not reached")) for row in column.rows}
    assert {row: outcome for row, outcome in wrong.items() if outcome != "ok"} == {}
