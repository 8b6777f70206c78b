"""A server with everything that clients can ask of it, and what must hold of it once they are gone."""

import gc
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
from pydantic import BaseModel

from servers.gateway.joined.gateway import gateway
from shared import Context, Implementation, Run, Server
from shared.errors import ResourceNotFound, ToolError
from shared.extensions.dialects import DIALECTS
from shared.extensions.tasks import tasks
from shared.protocol.session.events import Call
from shared.protocol.session.server import ServerSession
from shared.server.dispatch.connection import Connection
from shared.telemetry.audit import Audit, audit_calls
from shared.transports.http.limits.endpoint_limits import ClientLimits, EndpointLimits
from shared.transports.http.server import HttpOptions, run_http
from shared.transports.http.streamable.session import HttpSession
from tests.servers.gateway.joined.members import Door

PATIENCE = 60.0
TOKENS = ("token-of-ada-0123456789", "token-of-bob-9876543210")
COUNTED = (Call, Connection, ServerSession, HttpSession)
"""What must not outlive the clients that it was made for."""

Json = dict[str, Any]


class Answer(BaseModel):
    """What a client is asked for."""

    word: str


class Lines:
    """A file of an audit log that keeps its lines."""

    def __init__(self) -> None:
        self.written: list[Json] = []

    def write(self, lines: bytes) -> None:
        """Keep the lines."""
        self.written += map(json.loads, lines.splitlines())

    def close(self) -> None:
        """Nothing is open."""


@dataclass
class World:
    """One server that is being served in every way, and the limits that it has."""

    running: Run[Any]
    inner: Run[Any]
    """What does the work: the server itself, or that behind the gateway."""
    lines: list[Json]
    port: int = 0
    has_gateway: bool = False
    trouble: list[str] = field(default_factory=list)
    """What was wrong, in words."""

    def change(self, uri: str) -> None:
        """The resource has changed."""
        self.inner.changes.resource(uri)

    def check_lines(self, nonces: Iterable[str]) -> None:
        """Each request with one of these `nonces` has a line in the audit log, and without a gateway only one."""
        text = Counter(nonce for line in self.lines for nonce in _nonces(line))
        for nonce in nonces:
            if not text[nonce] or (text[nonce] > 1 and not self.has_gateway):
                self.trouble.append(f"request {nonce} has {text[nonce]} lines in the audit log")

    async def check_places(self) -> None:
        """All that the clients had is given back, soon after they have left."""
        with anyio.move_on_after(PATIENCE):
            while any(self._taken().values()):
                await anyio.sleep(0.01)
        self.trouble += [f"{count} {what} are left" for what, count in self._taken().items() if count]

    def _taken(self) -> dict[str, int]:
        runs = {self.running, self.inner}
        quota: Any = self.running.hooks.quota
        return {
            "calls": sum(len(run.calls) for run in runs),
            "bytes of arguments": sum(run.calls.memory.portions._used for run in runs),
            "subscriptions": sum(run.changes.subscribed_resources for run in runs),
            "calls of clients": 0 if quota is None else sum(quota.pending_calls.values()),
        }


def _nonces(line: Json) -> set[str]:
    arguments = line.get("arguments")
    given = arguments if isinstance(arguments, dict) else {}
    return {value for value in (given.get("nonce"), line.get("uri", "").rpartition("//")[2]) if value}


def make_server() -> Server[Any]:
    """A server whose tools say the `nonce` of their call."""
    app = Server[Any](
        Implementation(name="mixed", version="1"),
        capabilities={"logging": {}},
        extensions=[tasks(after_seconds=0.01)],
    )

    @app.tool()
    async def echo(nonce: str, text: str = "") -> str:
        """Give back what came."""
        return f"{nonce} {len(text)}"

    @app.tool()
    async def pause(ctx: Context[Any], nonce: str, seconds: float) -> str:
        """Take a while, and tell of it."""
        await ctx.progress(1, 2, nonce)
        await anyio.sleep(seconds)
        return nonce

    @app.tool()
    async def wait(nonce: str) -> str:
        """Wait for ever."""
        await anyio.sleep_forever()
        return nonce

    @app.tool()
    async def fail(nonce: str) -> str:
        """Fail."""
        raise ToolError(nonce)

    @app.tool()
    async def ask(ctx: Context[Any], nonce: str) -> str:
        """Ask the user."""
        answer = await ctx.ask("word", f"A word for {nonce}?", Answer)
        return f"{nonce} {answer.action}"

    @app.tool(task="optional")
    async def work(ctx: Context[Any], nonce: str, seconds: float, text: str = "") -> str:
        """Work, as a task where the client has some."""
        await ctx.progress(1, 2, nonce)
        await anyio.sleep(seconds)
        return nonce

    @app.resource("memo://{name}")
    async def memo(name: str) -> str:
        """A memo."""
        return name

    @app.on_subscribe
    async def subscribe(_context: object, uri: str) -> str:
        if not uri.startswith("memo://"):
            raise ResourceNotFound(uri)
        return uri

    return app


@asynccontextmanager
async def open_world(chance: random.Random) -> AsyncIterator[World]:
    """A server with random limits, alone or behind a gateway, until all its clients are gone."""
    app, lines = make_server(), Lines()
    audit = Audit(lines, arguments=True)  # type: ignore[arg-type]
    few = {"concurrent_calls": chance.choice([1, 2, 64]), "waiting_calls": chance.choice([2, 50, 3_000])}
    app.limits = replace(app.limits, drain_seconds=1.0, **few)
    async with AsyncExitStack() as stack:
        if chance.random() < 0.4:
            door = Door("mixed", app)
            door.extensions = [audit_calls(audit, "mixed")]
            inner = await door.open()
            stack.push_async_callback(door.close)
            joined = gateway([door])
            joined.limits = app.limits
            opened = joined.open(extensions=[DIALECTS, audit_calls(audit, "joined")])
            running = await stack.enter_async_context(opened)
        else:
            running = inner = await stack.enter_async_context(
                app.open(extensions=[DIALECTS, audit_calls(audit, "mixed")])
            )
        world = World(running, inner, lines.written, has_gateway=running is not inner)
        clients = ClientLimits(calls=chance.choice([2, 1_000]))
        world.port = await stack.enter_async_context(_served(running, EndpointLimits(dialects=True, clients=clients)))
        yield world
        await world.check_places()


@asynccontextmanager
async def _served(running: Run[Any], limits: EndpointLimits) -> AsyncIterator[int]:
    ready, stop, ports = anyio.Event(), anyio.Event(), list[int]()

    def started(_host: str, port: int) -> None:
        ports.append(port)
        ready.set()

    async def run() -> None:
        await run_http(running, HttpOptions(port=0, limits=limits, tokens=TOKENS), started=started, stop=stop)

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await ready.wait()
        yield ports[0]
        stop.set()


def living() -> Counter[str]:
    """How many objects there are of each kind that must not outlive its client."""
    gc.collect()
    return Counter(type(one).__name__ for one in gc.get_objects() if isinstance(one, COUNTED))
