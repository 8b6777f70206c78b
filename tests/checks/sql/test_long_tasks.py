"""An import that lasts, as a task of a server over HTTP with the tokens of two users: it belongs to its owner and to
no connection, others work meanwhile, and it leaves the database whole however it ends.

The table has a trigger that counts to five thousand for each row, and the CSV two million rows: more work than
any machine does in a minute, so the import is still at work however long the test takes.
"""

import sqlite3
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from itertools import count
from pathlib import Path

import anyio
import httpx
import pytest

from tests.shared.transports.http.http_wire import events
from tests.wire import PATIENCE, STATELESS, Json, Wire, listening, with_envelope

pytestmark = pytest.mark.timeout(600)

SECONDS = 60
RATE = 50
"""Calls a second."""
AT_ONCE = 8
TASKS = "io.modelcontextprotocol/tasks"
SERVER = """
import asyncio, sys
from pathlib import Path

from servers.sqlite.server import app
from servers.sqlite.settings import Settings
from shared.transports.http.server import HttpOptions, run_http

def started(host, port):
    print(f"listening on http://{host}:{port}/mcp", file=sys.stderr, flush=True)

async def main(folder):
    settings = Settings(databases=[folder / "data.db"], allow_write=True, files=folder)
    async with app.open(settings) as running:
        await run_http(running, HttpOptions(port=0, tokens=("ada", "eve")), started=started)

asyncio.run(main(Path(sys.argv[1])))
"""

_ids = count(1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a database, and a CSV whose import lasts."""
    counted = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 5000) SELECT max(n) FROM n"
    with closing(sqlite3.connect(tmp_path / "data.db")) as connection:
        connection.executescript(
            "PRAGMA journal_mode = wal; CREATE TABLE slow (n); CREATE TABLE quick (n); INSERT INTO quick VALUES (1);"
            f"CREATE TRIGGER slowly AFTER INSERT ON slow BEGIN SELECT ({counted}); END;"
        )
    (tmp_path / "rows.csv").write_text("n\n" + "1\n" * 2_000_000)
    return tmp_path


class User:
    """One connection of a user, known by a token."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client

    async def ask(self, method: str, name: str | None = None, /, **params: object) -> Json:
        """The whole answer to a request."""
        # A call that is to be answered asks for no task, however long it lasts on a slow machine.
        message, headers = _request(method, name, params, tasks=method != "tools/call" or name == "import_csv")
        answer: Json = (await self.client.post("/mcp", json=message, headers=headers)).json()
        return answer

    async def call(self, tool: str, /, **arguments: object) -> Json:
        """The result of a tool, or the task that the call has become."""
        result: Json = (await self.ask("tools/call", tool, name=tool, arguments=arguments))["result"]
        return result

    async def state(self, task: str) -> Json:
        """A task as it is."""
        state: Json = (await self.ask("tasks/get", task, taskId=task))["result"]
        return state

    async def poll(self, task: str, seen: anyio.Event) -> None:
        """Asks how the task is, for ever."""
        while True:
            _note(await self.state(task), seen)
            await anyio.sleep(0.5)

    async def listen(self, task: str, seen: anyio.Event) -> None:
        """Hears how the task is, for ever."""
        message, headers = _request("subscriptions/listen", None, {"notifications": {"taskIds": [task]}})
        async with self.client.stream("POST", "/mcp", json=message, headers=headers) as response:
            async for told in events(response):
                if told.get("method") == "notifications/tasks":
                    _note(told["params"], seen)


def _request(method: str, name: str | None, params: Json, *, tasks: bool = True) -> tuple[Json, dict[str, str]]:
    params = with_envelope(params, capabilities={"extensions": {TASKS: {}}} if tasks else {})
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": STATELESS,
        "mcp-method": method,
        **({} if name is None else {"mcp-name": name}),
    }
    return {"jsonrpc": "2.0", "id": next(_ids), "method": method, "params": params}, headers


def _note(state: Json, seen: anyio.Event) -> None:
    assert state["status"] == "working", state
    if "rows imported" in state.get("statusMessage", ""):
        seen.set()


@asynccontextmanager
async def connected(url: str, token: str) -> AsyncIterator[User]:
    headers = {"authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, trust_env=False, timeout=4 * PATIENCE) as client:
        yield User(client)


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[tuple[Wire, str]]:
    async with Wire([sys.executable, "-c", SERVER, str(folder)]) as process:
        try:
            yield process, await listening(process)
        finally:
            process.kill()


async def begun(url: str) -> str:
    """The task of an import that Ada has begun on a connection that is closed by now."""
    async with connected(url, "ada") as ada:
        created = await ada.call("import_csv", table="slow", file="rows.csv")
    assert created["resultType"] == "task", created
    id_: str = created["taskId"]
    return id_


async def followed(url: str, task: str) -> None:
    """Two connections of Ada's follow the task until both have seen it move; then both are gone."""
    polled, heard = anyio.Event(), anyio.Event()
    async with connected(url, "ada") as one, connected(url, "ada") as other, anyio.create_task_group() as tasks:
        tasks.start_soon(one.poll, task, polled)
        tasks.start_soon(other.listen, task, heard)
        await polled.wait()
        await heard.wait()
        tasks.cancel_scope.cancel()


async def kept_busy(url: str) -> float:
    """Asks so many calls a second for so many seconds, or for longer where the machine is slow; the seconds taken."""
    numbers, began = iter(range(RATE * SECONDS)), time.monotonic()

    async def work(user: User) -> None:
        for number in numbers:
            await anyio.sleep(max(began + number / RATE - time.monotonic(), 0))
            found = await user.call("read_query", query="SELECT n, ? FROM quick", parameters=[number])
            assert found["structuredContent"]["rows"] == [[1, number]]

    async with connected(url, "eve") as user, anyio.create_task_group() as tasks:
        for _ in range(AT_ONCE):
            tasks.start_soon(work, user)
    return time.monotonic() - began


async def assert_nothing_is_seen_by(user: User, task: str) -> None:
    for method in ("tasks/get", "tasks/cancel"):
        assert (await user.ask(method, task, taskId=task))["error"]["code"] == -32602
    answers = {"inputResponses": {}}
    assert (await user.ask("tasks/update", task, taskId=task, **answers))["error"]["code"] == -32602


def assert_whole(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "data.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("SELECT count(*) FROM slow").fetchone() == (0,)


async def test_a_long_import_belongs_to_its_owner_and_to_no_connection(folder: Path) -> None:
    async with serving(folder) as (_, url):
        task = await begun(url)
        await followed(url, task)
        seconds = await kept_busy(url)
        print(f"\n{RATE * SECONDS:,} calls in {seconds:.1f} s beside an import")
        async with connected(url, "eve") as eve, connected(url, "ada") as ada:
            await assert_nothing_is_seen_by(eve, task)
            assert (await ada.state(task))["status"] == "working"
            await ada.ask("tasks/cancel", task, taskId=task)
            assert (await ada.state(task))["status"] == "cancelled"
            # The connection that writes is free again.
            written = await eve.call("write_query", query="INSERT INTO quick VALUES (2)")
        assert written["structuredContent"]["committed"]
        assert_whole(folder)


async def test_a_server_that_is_killed_while_a_task_imports_leaves_the_database_whole(folder: Path) -> None:
    async with serving(folder) as (process, url):
        task = await begun(url)
        await followed(url, task)
        process.kill()
    assert_whole(folder)
    async with serving(folder) as (_, url), connected(url, "ada") as ada:
        # Whoever comes back for the task is told that there is none, by a code of its own.
        assert (await ada.ask("tasks/get", task, taskId=task))["error"]["code"] == -32602
