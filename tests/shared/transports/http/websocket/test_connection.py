"""A WebSocket connection: handshake, messages and orderly end."""

import json
from contextlib import AsyncExitStack

import anyio

from shared.transports.http.limits.endpoint_limits import EndpointLimits, SessionLimits
from tests.shared.transports.http.http_wire import Site, envelope, served, visited
from tests.shared.transports.http.web_socket import (
    ACCEPTED,
    CLOSE,
    CONTINUED,
    PING,
    PONG,
    TEXT,
    Frame,
    frame,
    upgrading,
    web_socket,
)


async def refusal(site: Site, headers: dict[str, str | None]) -> tuple[str, str]:
    """Sends a handshake that is refused; returns the head of the answer and the reason."""
    async with upgrading(site, headers) as (_stream, received, head):
        length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        body = json.loads(await received.receive_exactly(length))
        return head, body["error"]["message"]


# The handshake


async def test_the_handshake_is_answered_with_accept_and_subprotocol(standing: Site) -> None:
    async with visited(standing) as site, web_socket(site) as socket:
        assert f"sec-websocket-accept: {ACCEPTED.lower()}" in socket.head
        assert "sec-websocket-protocol: mcp" in socket.head
        assert "sec-websocket-extensions" not in socket.head


async def test_a_handshake_without_a_subprotocol_gets_none(standing: Site) -> None:
    async with visited(standing) as site, web_socket(site, {"Sec-WebSocket-Protocol": None}) as socket:
        assert "sec-websocket-protocol" not in socket.head
        assert (await socket.initialize())["result"]["serverInfo"]["name"] == "sample"


async def test_the_mcp_subprotocol_is_chosen_among_several(standing: Site) -> None:
    async with visited(standing) as site, web_socket(site, {"Sec-WebSocket-Protocol": "chat, mcp"}) as socket:
        assert "sec-websocket-protocol: mcp" in socket.head


REFUSED: list[tuple[dict[str, str | None], int]] = [
    ({"Sec-WebSocket-Protocol": "chat"}, 400),
    ({"Sec-WebSocket-Key": None}, 400),
    ({"Sec-WebSocket-Key": "short"}, 400),
    ({"Connection": "keep-alive"}, 400),
    ({"Sec-WebSocket-Version": "8"}, 426),
    ({"Sec-WebSocket-Version": None}, 426),
    ({"Origin": "https://evil.example"}, 403),
    ({"Host": "evil.example"}, 400),
]


async def test_an_invalid_handshake_is_refused_with_its_http_status(standing: Site) -> None:
    async with visited(standing) as site:
        for headers, status in REFUSED:
            head, reason = await refusal(site, headers)
            assert head.startswith(f"http/1.1 {status} "), headers
            assert ("sec-websocket-version: 13\r\n" in head) is (status == 426)
            assert "evil" not in reason
            assert "short" not in reason


async def test_an_upgrade_without_a_valid_token_gets_401() -> None:
    async with served(tokens=("right",)) as site:
        head, _ = await refusal(site, {"Authorization": "Bearer wrong"})
        assert head.startswith("http/1.1 401 ")
        assert "www-authenticate: bearer" in head
        async with web_socket(site, {"Authorization": "Bearer right"}) as socket:
            assert "result" in await socket.initialize()


async def test_a_connection_serves_requests_after_a_refused_upgrade(standing: Site) -> None:
    async with visited(standing) as site, upgrading(site, {"Sec-WebSocket-Key": None}) as (stream, received, head):
        length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        await received.receive_exactly(length)
        await stream.send(f"GET /healthz HTTP/1.1\r\nHost: localhost:{site.port}\r\n\r\n".encode())
        assert (await received.receive_until(b"\r\n", 1_000)).startswith(b"HTTP/1.1 200 ")


async def test_a_page_of_localhost_may_open_a_websocket(standing: Site) -> None:
    async with visited(standing) as site, web_socket(site, {"Origin": f"http://localhost:{site.port}"}) as socket:
        assert "result" in await socket.initialize()


async def test_frames_sent_with_the_handshake_are_read(standing: Site) -> None:
    ping = b'{"jsonrpc": "2.0", "id": "early", "method": "ping"}'
    async with visited(standing) as site, web_socket(site, early_data=frame(TEXT, ping)) as socket:
        assert (await socket.receive())["id"] == "early"


# Messages


async def test_one_websocket_serves_session_and_stateless_requests(standing: Site) -> None:
    async with visited(standing) as site, web_socket(site) as socket:
        await socket.initialize()
        assert (await socket.call("echo", text="ø"))["result"]["content"][0]["text"] == "ø"
        answer = await socket.request("tools/list", {"_meta": envelope()})
        assert answer["result"]["resultType"] == "complete"


async def test_notifications_arrive_before_the_answer(standing: Site) -> None:
    async with visited(standing) as site, web_socket(site) as socket:
        await socket.initialize()
        call = site.message("tools/call", {"name": "report", "arguments": {}, "_meta": {"progressToken": 7}})
        await socket.send(call)
        assert [(await socket.receive())["params"]["progress"] for _ in range(2)] == [1, 2]
        assert (await socket.receive())["id"] == call["id"]


async def test_a_message_may_come_in_fragments_with_a_ping_between(standing: Site) -> None:
    async with visited(standing) as site, web_socket(site) as socket:
        message = json.dumps(site.message("ping", id="ø"), ensure_ascii=False).encode()
        middle = message.index("ø".encode()) + 1
        await socket.frame(TEXT, message[:middle], last=False)
        await socket.frame(PING, b"there?")
        await socket.frame(CONTINUED, b"", last=False)
        await socket.frame(CONTINUED, message[middle:])
        assert await socket.next() == Frame(PONG, b"there?")
        assert (await socket.receive())["id"] == "ø"


async def test_two_messages_in_a_frame_are_a_parse_error(standing: Site) -> None:
    async with visited(standing) as site, web_socket(site) as socket:
        await socket.send(
            b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}{"jsonrpc": "2.0", "id": 2, "method": "ping"}'
        )
        answer = await socket.receive()
        assert (answer["error"]["code"], "id" in answer) == (-32700, False)
        assert "result" in await socket.request("ping")


async def test_a_large_message_is_read_and_answered(standing: Site) -> None:
    text = "ø" * 100_000
    async with visited(standing) as site, web_socket(site) as socket:
        await socket.initialize()
        assert (await socket.call("echo", text=text))["result"]["content"][0]["text"] == text


async def test_a_call_is_cancelled_by_its_notification() -> None:
    async with served() as site, web_socket(site) as socket:
        await socket.initialize()
        call = site.message("tools/call", {"name": "wait", "arguments": {}})
        await socket.send(call)
        await site.probe.started.wait()
        cancelled = {"method": "notifications/cancelled", "params": {"requestId": call["id"]}}
        await socket.send({"jsonrpc": "2.0", **cancelled})
        await site.probe.cancelled.wait()


async def test_resource_updates_arrive_on_a_websocket() -> None:
    async with served() as site, web_socket(site) as socket:
        await socket.initialize()
        assert "result" in await socket.request("resources/subscribe", {"uri": "memo://one"})
        site.running.changes.resource("memo://one")
        assert (await socket.receive())["method"] == "notifications/resources/updated"


# The end


async def test_a_close_frame_cancels_running_calls() -> None:
    async with served() as site, web_socket(site) as socket:
        await socket.initialize()
        await socket.send(site.message("tools/call", {"name": "wait", "arguments": {}}))
        await site.probe.started.wait()
        await socket.frame(CLOSE, (1000).to_bytes(2) + b"enough")
        assert await socket.closed() == (1000, "enough")
        await site.probe.cancelled.wait()


async def test_a_lost_connection_cancels_running_calls() -> None:
    async with served() as site:
        async with web_socket(site) as socket:
            await socket.initialize()
            await socket.send(site.message("tools/call", {"name": "wait", "arguments": {}}))
            await site.probe.started.wait()
        await site.probe.cancelled.wait()
        await site.idle()


async def test_a_stopping_server_finishes_running_calls() -> None:
    async with served() as site, web_socket(site) as socket:
        await socket.initialize()
        call = site.message("tools/call", {"name": "wait", "arguments": {}})
        await socket.send(call)
        await site.probe.started.wait()
        site.stop.set()
        await anyio.lowlevel.checkpoint()
        site.probe.release.set()
        assert (await socket.receive())["id"] == call["id"]
        assert (await socket.next()).closing == (1001, "the server is stopping")
        await socket.frame(CLOSE, (1001).to_bytes(2))


async def test_a_websocket_counts_as_a_session_and_a_stream() -> None:
    async with served() as site:
        async with web_socket(site) as socket:
            await socket.request("ping")
            health = await site.health()
            assert (health["sessions"], health["streams"]) == (1, 1)
        await site.idle()
        assert (await site.health())["sessions"] == 0


async def test_a_full_server_refuses_an_upgrade() -> None:
    limits = EndpointLimits(sessions=SessionLimits(sessions=2))
    async with served(limits=limits) as site, web_socket(site):
        await site.initialize()
        head, _ = await refusal(site, {})
        assert head.startswith("http/1.1 503 ")
        assert "retry-after: " in head


async def test_a_new_client_replaces_a_websocket_of_the_largest_client() -> None:
    limits = EndpointLimits(sessions=SessionLimits(sessions=3))
    async with served(limits=limits) as site, AsyncExitStack() as sockets:
        many = [await sockets.enter_async_context(web_socket(site)) for _ in range(3)]
        other = await sockets.enter_async_context(web_socket(site, address="127.0.0.2"))
        assert (await many[0].next()).closing == (1013, "too many sessions are open")
        assert "result" in await other.request("ping")
        assert "result" in await many[1].request("ping")


async def test_a_websocket_without_messages_expires() -> None:
    limits = EndpointLimits(sessions=SessionLimits(idle_seconds=0.1))
    async with served(limits=limits) as site, web_socket(site) as used:
        await used.request("ping")
        async with web_socket(site) as silent:
            assert (await silent.next()).closing == (1008, "no message has arrived")
        assert "result" in await used.request("ping")
