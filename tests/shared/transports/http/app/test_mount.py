"""Several servers behind one listener, isolated from each other's failures."""

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import httpx
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from shared.errors import InvalidParams
from shared.protocol.types.base import Implementation
from shared.server.dispatch.limits import Limits
from shared.server.server import NoSettings, Server
from shared.telemetry import readiness, supervised
from shared.transports.http.app import mount as http_mount
from shared.transports.http.app.mount import Mount
from shared.transports.http.limits.endpoint_limits import EndpointLimits, SessionLimits
from shared.transports.http.server import HttpOptions, run_mounts
from shared.transports.http.streamable import bodies
from shared.transports.http.streamable import sessions as http_sessions
from tests.shared.transports.http.http_wire import PATIENCE, Json, Probe, Site, make_server, merged, plain_client
from tests.shared.transports.http.sse_wire import streaming
from tests.shared.transports.http.web_socket import web_socket

Opening = Callable[[Any], AsyncIterator[Any]]


class Hosted(Site):
    """A listener with several servers, and a client of the listener."""

    ended: bool | None = None
    mounts: Sequence[Mount] = ()

    def at(self, name: str) -> Site:
        """Returns the site as seen by the clients of one server."""
        port = self.port
        client = plain_client(base_url=f"http://127.0.0.1:{port}/{name}", limits=_LIMITS)
        return Site(self.running, port, self.stop, client)

    async def ready(self) -> Json:
        """Returns the entry of each server in /readyz, and checks the overall status."""
        answer = await self.client.get("/readyz")
        servers: Json = answer.json()["servers"]
        is_ready = all(one["status"] == "ready" for one in servers.values())
        assert answer.status_code == (200 if is_ready else 503)
        return servers

    async def until(self, name: str, status: str) -> Json:
        """Waits until a server has this status; returns its entry."""
        while (entry := (await self.ready())[name])["status"] != status:
            await anyio.lowlevel.checkpoint()
        return entry


_LIMITS = httpx.Limits(max_connections=200, max_keepalive_connections=0)


def a_server(name: str, opening: Opening | None = None) -> Server[Any]:
    """Makes a server with an echo tool and the lifespan `opening`."""
    app = Server[Any](Implementation(name=name, version="1"))

    @app.tool()
    async def echo(text: str) -> str:
        """Give back what came."""
        logging.getLogger("here").warning("echoing")
        return f"{name}: {text}"

    if opening is not None:
        app.lifespan(opening)
    return app


def failing(when: anyio.Event) -> Opening:
    """Returns a lifespan that fails while its server is serving."""

    async def open_and_fail(_settings: object) -> AsyncIterator[Any]:
        async def break_down() -> None:
            await when.wait()
            raise RuntimeError("a secret detail")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(break_down)
            yield Probe()

    return open_and_fail


async def front(_request: Request) -> Response:
    return PlainTextResponse("front")


@asynccontextmanager
async def hosted(*apps: Server[Any], limits: EndpointLimits | None = None, **options: Any) -> AsyncIterator[Hosted]:
    """Serves these servers on a free port, each under its name."""
    ready, stop, ports = anyio.Event(), anyio.Event(), []
    mounts = [Mount(app, f"/{app.implementation.name}/mcp", limits or EndpointLimits(), NoSettings()) for app in apps]

    def started(_host: str, port: int) -> None:
        ports.append(port)
        ready.set()

    async with anyio.create_task_group() as tasks:

        async def run() -> None:
            site.ended = await run_mounts(
                mounts,
                HttpOptions(port=0, limits=limits or EndpointLimits(), **options),
                front,
                started=started,
                stop=stop,
            )

        async with plain_client(limits=_LIMITS) as client:
            site = Hosted(None, 0, stop, client)
            site.mounts = mounts
            tasks.start_soon(run)
            with anyio.fail_after(PATIENCE):
                await ready.wait()
            site.port = ports[0]
            client.base_url = httpx.URL(f"http://127.0.0.1:{ports[0]}")
            with anyio.fail_after(3 * PATIENCE):
                yield site
            stop.set()


async def echoed(site: Site, text: str = "x", **headers: str) -> httpx.Response:
    message, routing = site.stateless("tools/call", {"name": "echo", "arguments": {"text": text}})
    return await site.post(message, {**routing, **headers})


async def serves(site: Hosted, name: str) -> None:
    """Checks that a server answers a call."""
    answer = await echoed(site.at(name))
    assert answer.json()["result"]["content"][0]["text"] == f"{name}: x", answer.text


NOTHING = "nothing is served here; try /one/mcp, /two/mcp"


async def test_each_server_is_served_under_its_name() -> None:
    async with hosted(a_server("one"), a_server("two")) as site:
        for name in ("one", "two"):
            await site.until(name, "ready")
            await serves(site, name)
        for path in ("/mcp", "/three/mcp", "/one", "/one/mcp//", "/one/mcp/x"):
            answer = await site.client.post(path)
            assert (answer.status_code, answer.json()["error"]["message"]) == (404, NOTHING)
        assert (await site.client.get("/")).text == "front"
    assert site.ended is True


async def test_each_server_accepts_dialects() -> None:
    async with hosted(a_server("one"), a_server("two"), limits=EndpointLimits(dialects=True)) as site:
        for name in ("one", "two"):
            await site.until(name, "ready")
            called = site.message("mcp/tool/execute", {"toolId": f"{name}/echo", "inputs": {"text": "x"}})
            assert (await site.at(name).post(called)).json()["result"] == f"{name}: x"


async def test_a_server_that_crashes_at_startup_does_not_affect_the_others(caplog: pytest.LogCaptureFixture) -> None:
    async def crash(_settings: object) -> AsyncIterator[Any]:
        raise RuntimeError("a secret detail")
        yield

    async with hosted(a_server("one"), a_server("bad", crash)) as site:
        entry = await site.until("bad", "failed")
        assert entry["reason"] == "it could not start (RuntimeError); the log says more"
        answer = await echoed(site.at("bad"))
        assert (answer.status_code, int(answer.headers["retry-after"]) > 0) == (503, True)
        assert answer.json()["error"]["message"] == (
            "this server has failed: it could not start (RuntimeError); the log says more. "
            "It is being restarted; try again later"
        )
        await serves(site, "one")
        assert (await site.client.get("/healthz")).json()["status"] == "ok"
    assert caplog.text.count("RuntimeError: a secret detail") == 1


async def test_a_slow_start_delays_only_that_server() -> None:
    go_on = anyio.Event()

    async def late(_settings: object) -> AsyncIterator[Any]:
        await go_on.wait()
        yield

    async with hosted(a_server("one"), a_server("bad", late)) as site:
        answer = await echoed(site.at("bad"))
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
        await site.until("one", "ready")
        assert await site.ready() == {"one": {"status": "ready"}, "bad": {"status": "starting"}}
        await serves(site, "one")
        go_on.set()
        await site.until("bad", "ready")
        await serves(site, "bad")
    assert site.ended is True


async def test_a_failed_server_ends_its_own_sessions_and_calls_only() -> None:
    fail = anyio.Event()
    app = make_server(failing(fail))
    async with hosted(a_server("one"), app) as site, anyio.create_task_group() as tasks:
        await site.until("sample", "ready")
        bad, answers = site.at("sample"), list[httpx.Response]()
        session = await bad.initialize()

        async def wait(message: Json, headers: Json) -> None:
            answers.append(await bad.post(message, headers))

        params = {"name": "wait", "arguments": {}}
        tasks.start_soon(wait, *bad.stateless("tools/call", params))
        tasks.start_soon(wait, bad.message("tools/call", params), session)
        while (await site.health())["streams"] < 2:
            await anyio.lowlevel.checkpoint()
        fail.set()
        entry = await site.until("sample", "failed")
        while len(answers) < 2:
            await anyio.lowlevel.checkpoint()
        assert entry["reason"] == "it failed while serving (RuntimeError); the log says more"
        assert sorted(one.status_code for one in answers) == [404, 503]
        assert (await bad.post(bad.message("ping"), session)).status_code == 503
        assert (await site.health())["sessions"] == 0
        await serves(site, "one")


async def test_a_failed_server_restarts_with_fresh_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervised, "FIRST_PAUSE_SECONDS", 0.001)
    fail, go_on, lives = anyio.Event(), anyio.Event(), list[int]()

    async def live(opening: Any) -> AsyncIterator[Any]:
        lives.append(len(lives))
        if len(lives) > 1:
            await go_on.wait()
            yield Probe()
            return
        async with asynccontextmanager(failing(fail))(opening) as state:
            yield state

    async with hosted(a_server("one"), make_server(live)) as site:
        await site.until("sample", "ready")
        again = site.at("sample")
        session = await again.initialize()
        async with web_socket(site, path="/sample/mcp") as socket:
            await socket.request("ping")
            fail.set()
            assert (await socket.next()).closing == (1011, "the server has failed")
        assert (await site.until("sample", "failed"))["reason"].startswith("it failed while serving")
        go_on.set()
        await site.until("sample", "ready")
        assert (await again.post(again.message("ping"), session)).status_code == 404
        session = await again.initialize()
        assert (await again.post(again.message("ping"), session)).status_code == 200
        assert (await echoed(again)).json()["result"]["content"][0]["text"] == "x"
        async with web_socket(site, path="/sample/mcp") as socket:
            await socket.request("ping")
    assert site.ended is True


async def test_a_failed_server_closes_its_websockets(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(http_sessions, "MEMORY_RETURN_SESSIONS", 1)
    fail = anyio.Event()
    app = make_server(failing(fail))
    async with hosted(a_server("one"), app) as site:
        await site.until("sample", "ready")
        async with web_socket(site, path="/sample/mcp") as socket:
            await socket.request("ping")
            fail.set()
            assert (await socket.next()).closing == (1011, "the server has failed")
        await site.idle()
    assert "Exception in ASGI application" not in caplog.text


async def test_a_hanging_readiness_check_affects_only_its_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "CHECK_SECONDS", 0.05)
    bad = a_server("bad")

    @bad.on_ready
    async def hang(_running: object) -> str | None:
        await anyio.sleep_forever()
        return None

    async with hosted(a_server("one"), bad) as site:
        await site.until("one", "ready")
        assert (await site.ready())["bad"] == {"status": "degraded", "reason": "its check did not finish within 2 s"}
        assert (await site.ready())["one"] == {"status": "ready"}
        await serves(site, "bad")


async def test_healthz_calls_no_health_hook() -> None:
    bad = a_server("bad")

    @bad.on_health
    def break_down(_running: object) -> Json:
        raise RuntimeError("asked")

    async with hosted(bad) as site:
        answer = await site.client.get("/healthz")
        assert (answer.status_code, answer.json()["status"]) == (200, "ok")


async def test_a_hanging_server_is_abandoned_at_shutdown(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(supervised, "CANCEL_SECONDS", 0.05)
    closed, go_on = list[str](), anyio.Event()

    async def orderly(_settings: object) -> AsyncIterator[Any]:
        yield
        closed.append("closed")

    async def cling(_settings: object) -> AsyncIterator[Any]:
        yield
        with anyio.CancelScope(shield=True):
            await go_on.wait()

    apps = [a_server("one", orderly), a_server("bad", cling), a_server("two", orderly)]
    for app in apps:
        app.limits = Limits(drain_seconds=0.05)
    async with hosted(*apps) as site:
        for name in ("one", "bad", "two"):
            await site.until(name, "ready")
    assert (site.ended, closed) == (False, ["closed", "closed"])
    assert "the server did not stop in time and was abandoned" in caplog.text
    go_on.set()


async def test_running_calls_finish_at_shutdown() -> None:
    app = make_server()
    async with hosted(app, a_server("one")) as site, anyio.create_task_group() as tasks:
        await site.until("sample", "ready")
        one, answers = site.at("sample"), list[httpx.Response]()

        async def wait() -> None:
            answers.append(await one.call("tools/call", {"name": "wait", "arguments": {}}))

        tasks.start_soon(wait)
        running = site.mounts[0].running
        assert running is not None
        while not running.state.started.is_set():
            await anyio.lowlevel.checkpoint()
        site.stop.set()
        running.state.release.set()
    assert answers[0].json()["result"]["content"][0]["text"] == "released"


async def test_sessions_and_their_limit_are_per_server() -> None:
    limits = EndpointLimits(sessions=SessionLimits(sessions=1))
    async with hosted(a_server("one"), a_server("two"), limits=limits) as site:
        for name in ("one", "two"):
            await site.until(name, "ready")
        session = await site.at("one").initialize()
        assert (await site.at("two").post(site.message("ping"), session)).status_code == 404
        assert (await site.at("one").post(site.message("ping"), session)).status_code == 200
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        assert (await site.at("one").post(site.message("initialize", params))).status_code == 503
        await site.at("two").initialize()
        assert (await site.health())["sessions"] == 2


async def test_legacy_sse_streams_are_per_server() -> None:
    async with hosted(a_server("one"), a_server("two")) as site:
        for name in ("one", "two"):
            await site.until(name, "ready")
        async with streaming(site, path="/one/sse") as client:
            assert client.address.startswith("/one/messages?")
            await client.initialize()
            assert await client.call("echo", {"text": "x"}) == "one: x"
            client.address = client.address.replace("one", "two")
            assert (await client.post(site.message("ping"))).status_code == 404


async def test_a_legacy_sse_stream_ends_when_its_server_fails() -> None:
    fail = anyio.Event()
    async with hosted(a_server("one"), a_server("bad", failing(fail))) as site:
        await site.until("bad", "ready")
        async with streaming(site, path="/bad/sse") as client:
            fail.set()
            with pytest.raises(httpx.RemoteProtocolError):
                await client.rest()
            await site.until("bad", "failed")
            assert (await client.post(site.message("ping"))).status_code == 503
        assert (await site.health())["sessions"] == 0


async def test_change_notifications_are_per_server() -> None:
    apps = [make_server(), a_server("two")]

    @apps[1].resource("memo://one")
    async def memo() -> str:
        """A memo of the same name."""
        return "text"

    @apps[1].on_subscribe
    async def begin(_ctx: object, uri: str) -> str:
        return uri

    async with hosted(*apps) as site:
        for name in ("sample", "two"):
            await site.until(name, "ready")
        session = await site.at("sample").initialize()
        await site.at("sample").post(site.message("resources/subscribe", {"uri": "memo://one"}), session)
        assert [mount.figures().subscriptions for mount in site.mounts] == [1, 0]


async def test_signed_state_is_valid_only_for_servers_of_the_same_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_STATE_KEY", "of both")
    async with a_server("one").open() as one, a_server("one").open() as same, a_server("two").open() as other:
        signed = one.signer.sign("cursor:tools", 1)
        assert same.signer.verify("cursor:tools", signed) == 1
        refusing = other.signer
    with pytest.raises(InvalidParams):
        refusing.verify("cursor:tools", signed)


async def test_the_token_is_required_for_all_servers_and_metrics() -> None:
    async with hosted(a_server("one"), tokens=("secret",)) as site:
        for answer in (
            await echoed(site.at("one")),
            await site.client.post("/two/mcp"),
            await site.client.get("/metrics"),
        ):
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert (await site.client.get("/")).text == "front"
        assert (await site.client.get("/healthz")).status_code == 200
        ready = await site.client.get("/readyz")
        assert "servers" not in ready.json()
        headers = {"Authorization": "Bearer secret"}
        assert (await site.client.get("/two/mcp", headers=headers)).status_code == 404
        while (await echoed(site.at("one"), **headers)).status_code != 200:
            await anyio.lowlevel.checkpoint()


async def test_host_and_origin_are_checked_on_every_path() -> None:
    async with hosted(a_server("one")) as site:
        for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
            for path in ("/one/mcp", "/two/mcp", "/", "/healthz", "/readyz", "/metrics"):
                answer = await site.client.request("POST" if "mcp" in path else "GET", path, headers=headers)
                assert answer.status_code == 403, (path, headers)


async def test_answers_without_a_token_do_not_reveal_server_names() -> None:
    def seen(answer: httpx.Response) -> Any:
        return answer.status_code, [item for item in answer.headers.items() if item[0] != "date"], answer.content

    async with hosted(a_server("one"), tokens=("secret",)) as site:
        for method in ("GET", "POST", "OPTIONS"):
            for headers in ({}, {"Origin": "http://localhost"}):
                here, there = [
                    seen(await site.client.request(method, path, headers=headers))
                    for path in ("/one/mcp", "/two/mcp")
                ]
                assert here == there, (method, headers)


async def test_log_lines_name_the_server() -> None:
    named = list[tuple[str, str | None]]()

    class Names(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            named.append((record.getMessage(), http_mount.server_name.get()))

    async def checking(_running: object) -> str | None:
        if served:
            logging.getLogger("here").warning("checking")
        return None

    handler, apps, served = Names(), [a_server("one"), a_server("two")], list[str]()
    apps[1].on_ready(checking)
    logging.getLogger("here").addHandler(handler)
    try:
        async with hosted(*apps) as site:
            for name in ("one", "two"):
                await site.until(name, "ready")
                await serves(site, name)
                session = await site.at(name).initialize()
                params = {"name": "echo", "arguments": {"text": "x"}}
                await site.at(name).post(site.message("tools/call", params), session)
            served.append("both")
            await site.ready()
    finally:
        logging.getLogger("here").removeHandler(handler)
    assert named == [*(("echoing", name) for name in ("one", "one", "two", "two")), ("checking", "two")]


async def test_every_server_knows_the_listening_address() -> None:
    apps = [a_server("one"), a_server("two")]
    async with hosted(*apps) as site:
        for name in ("one", "two"):
            await site.until(name, "ready")
        runs = [mount.running for mount in site.mounts]
        assert [run and run.hooks.endpoints for run in runs] == [[("127.0.0.1", site.port)]] * 2
    assert [run and run.hooks.endpoints for run in runs] == [[], []]


async def test_metrics_are_labelled_by_server() -> None:
    async with hosted(a_server("one"), a_server("two")) as site:
        for name in ("one", "two"):
            await site.until(name, "ready")
        await serves(site, "one")
        text = (await site.client.get("/metrics", headers=merged(None))).text
    assert 'mcp_requests_total{method="tools/call",server="one",tool="echo"} 1.0' in text
    assert 'server="two",tool' not in text


async def test_the_servers_of_a_listener_share_the_memory_of_calls() -> None:
    started, release = anyio.Event(), anyio.Event()
    one, two = a_server("one"), a_server("two")

    @one.tool()
    async def keep(text: str) -> None:
        """Wait until released."""
        started.set()
        await release.wait()

    for server in (one, two):
        server.limits = replace(server.limits, call_bytes=300_000)
    async with hosted(one, two) as site, anyio.create_task_group() as tasks:
        await site.until("one", "ready")
        await site.until("two", "ready")
        message, routing = site.stateless("tools/call", {"name": "keep", "arguments": {"text": "x" * 200_000}})
        tasks.start_soon(site.at("one").post, message, routing)
        await started.wait()
        refused = await echoed(site.at("two"), "x" * 200_000)
        release.set()
    assert (refused.status_code, refused.json()["error"]["data"]["limit"]) == (429, "memory")


async def test_the_servers_of_a_listener_share_the_memory_of_bodies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "_MAX_BODIES_BYTES", 0)
    begun, lines = b"x" * 100_000, [*(f"{name}: {value}" for name, value in merged({})), "Content-Length: 100001"]
    async with (
        hosted(a_server("one"), a_server("two"), limits=EndpointLimits(body_bytes=120_000)) as site,
        AsyncExitStack() as stack,
    ):
        await site.until("one", "ready")
        await site.until("two", "ready")
        for _ in range(2):
            await stack.enter_async_context(site.raw(*lines, body=begun, request="POST /one/mcp"))
        # The first ones may come before the two bodies are read.
        answers = [await site.at("two").post(begun) for _ in range(8)]
    assert 429 in [answer.status_code for answer in answers]
