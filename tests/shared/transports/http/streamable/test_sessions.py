"""Sessions (handshake versions) over real sockets: many POSTs and one GET stream."""

import anyio
import pytest

from shared.protocol.http.rules import Refusal
from shared.server.dispatch.limits import Limits
from shared.transports.http.limits.endpoint_limits import EndpointLimits, SessionLimits
from shared.transports.http.streamable.session import HttpSession
from shared.transports.http.streamable.sessions import Sessions
from tests.clock import forward
from tests.quiet import quiet
from tests.shared.transports.http.http_wire import Json, Site, calling, events, make_server, merged, served, visited

VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
FORMS = {"elicitation": {}}


def call(site: Site, name: str, arguments: Json | None = None, **meta: object) -> Json:
    params: Json = {"name": name, "arguments": arguments or {}}
    return site.message("tools/call", {**params, "_meta": meta} if meta else params)


async def test_every_handshake_version_is_served(standing: Site) -> None:
    async with visited(standing) as site:
        for version in VERSIONS:
            session = await site.initialize(version)
            answer = await site.post(call(site, "echo", {"text": "hi"}), session)
            assert answer.headers["content-type"] == "application/json"
            assert answer.json()["result"] == {"content": [{"type": "text", "text": "hi"}]}


async def test_session_ids_are_unguessable_visible_ascii() -> None:
    async with served() as site:
        ids = {(await site.initialize())["Mcp-Session-Id"] for _ in range(3)}
        assert len(ids) == 3
        assert all(len(one) >= 32 and all("!" <= letter <= "~" for letter in one) for one in ids)


async def test_json_rpc_errors_of_a_session_have_status_200() -> None:
    async with served() as site:
        session = await site.initialize()
        for message, code in ((site.message("nonsense"), -32601), (call(site, "none"), -32602)):
            answer = await site.post(message, session)
            assert (answer.status_code, answer.json()["error"]["code"]) == (200, code)


async def test_a_failed_initialize_opens_no_session() -> None:
    async with served() as site:
        answer = await site.post(site.message("initialize", {"protocolVersion": "2025-11-25"}))
        assert (answer.status_code, answer.json()["error"]["code"]) == (200, -32602)
        assert "mcp-session-id" not in answer.headers
        assert await site.health() == {**await site.health(), "sessions": 0, "streams": 0}


POST_HEADERS: list[tuple[Json, int]] = [
    ({"Mcp-Session-Id": None}, 400),
    ({"Mcp-Session-Id": "unknown"}, 404),
    ({"Mcp-Session-Id": "not visible"}, 404),
    ({"MCP-Protocol-Version": "2025-06-18"}, 400),
    ({"MCP-Protocol-Version": "1999-01-01"}, 400),
    ({"MCP-Protocol-Version": None}, 200),
    ({"Accept": "application/json"}, 200),
    ({"Accept": "text/event-stream"}, 200),
    ({"Accept": ""}, 200),
    ({"Accept": "*/*"}, 200),
    ({"Accept": "text/html"}, 406),
    ({"Content-Type": "text/plain"}, 415),
    ({"Content-Type": "application/json; charset=utf-8"}, 200),
]


async def test_post_headers_are_checked(standing: Site) -> None:
    async with visited(standing) as site:
        session = await site.initialize()
        for headers, status in POST_HEADERS:
            answer = await site.post(call(site, "echo", {"text": "x"}), {**session, **headers})
            assert answer.status_code == status, headers
            assert "mcp-session-id" not in answer.headers
            assert status == 200 or "id" not in answer.json()


async def test_a_client_that_accepts_only_json_gets_only_the_answer(standing: Site) -> None:
    async with visited(standing) as site:
        session = await site.initialize()
        message = call(site, "report", progressToken="t")
        answer = await site.post(message, {**session, "Accept": "application/json"})
        assert (answer.status_code, answer.json()["id"]) == (200, message["id"])


NO_MESSAGE = [
    (b"{", -32700),
    (b"\xff", -32700),
    (b"", -32700),
    (b"{}", -32600),
    (b"[]", -32600),
    (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', -32600),
    (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600),
    (b'{"jsonrpc": "2.0", "method": "notifications/x", "params": []}', -32602),
]


async def test_invalid_messages_are_refused(standing: Site) -> None:
    async with visited(standing) as site:
        session = await site.initialize()
        for body, code in NO_MESSAGE:
            answer = await site.post(body, session)
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, code), body
            assert (await site.post(body)).status_code == 400, body
        assert (await site.post(site.message("ping"), session)).status_code == 200


async def test_delete_ends_a_session() -> None:
    async with served() as site:
        session = await site.initialize()
        ended = anyio.Event()

        async def read() -> None:
            async with site.client.stream("GET", "/mcp", headers=merged(session)) as stream:
                got.set()
                assert [one async for one in events(stream)] == []
            ended.set()

        async def wait() -> None:
            answer = await site.post(call(site, "wait"), session)
            assert answer.status_code == 404

        got = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            tasks.start_soon(wait)
            await got.wait()
            await site.probe.started.wait()
            assert (await site.client.delete("/mcp", headers=merged(session))).status_code == 200
            await ended.wait()
        await site.probe.cancelled.wait()
        for method in ("DELETE", "GET", "POST"):
            answer = await site.client.request(method, "/mcp", json=site.message("ping"), headers=merged(session))
            assert answer.status_code == 404, method
        assert (await site.client.delete("/mcp")).status_code == 400
        assert (await site.health())["sessions"] == 0


async def test_a_second_get_stream_is_refused() -> None:
    async with served() as site:
        session = await site.initialize()
        headers = merged(session)
        async with site.client.stream("GET", "/mcp", headers=headers) as first:
            assert first.headers["content-type"] == "text/event-stream"
            assert (await site.client.get("/mcp", headers=headers)).status_code == 409
        await site.idle()
        async with site.client.stream("GET", "/mcp", headers=headers) as again:
            assert again.status_code == 200


GET_HEADERS: list[tuple[Json, int]] = [
    ({"Accept": "application/json"}, 406),
    ({"Mcp-Session-Id": None}, 400),
    ({"Mcp-Session-Id": "unknown"}, 404),
    ({"MCP-Protocol-Version": "2025-06-18"}, 400),
    ({"MCP-Protocol-Version": "2026-07-28"}, 405),
]


async def test_get_headers_are_checked(standing: Site) -> None:
    async with visited(standing) as site:
        session = await site.initialize()
        for headers, status in GET_HEADERS:
            answer = await site.client.get("/mcp", headers=merged({**session, **headers}))
            assert answer.status_code == status, headers


async def test_other_methods_get_405(standing: Site) -> None:
    async with visited(standing) as site:
        for method in ("PUT", "PATCH", "OPTIONS", "HEAD"):
            answer = await site.client.request(method, "/mcp")
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST, GET, DELETE"), method


async def test_changes_arrive_on_the_get_stream_once() -> None:
    async with served() as site:
        session = await site.initialize()
        answer = await site.post(site.message("resources/subscribe", {"uri": "memo://one"}), session)
        assert answer.json()["result"] == {}
        site.running.changes.tools()
        await site.post(site.message("ping"), session)
        site.running.changes.tools()
        await site.post(site.message("ping"), session)
        async with site.client.stream("GET", "/mcp", headers=merged(session)) as stream:
            messages = events(stream)
            assert (await anext(messages))["method"] == "notifications/tools/list_changed"
            site.running.changes.resource("memo://one")
            updated = await anext(messages)
            assert (updated["method"], updated["params"]["uri"]) == ("notifications/resources/updated", "memo://one")


async def test_an_elicitation_is_sent_on_the_stream_of_its_post() -> None:
    async with served() as site:
        session = await site.initialize(capabilities=FORMS)
        async with site.stream(call(site, "favourite"), session) as answer:
            messages = events(answer)
            question = await anext(messages)
            assert question["method"] == "elicitation/create"
            given = {"action": "accept", "content": {"colour": "red"}}
            reply = await site.post({"jsonrpc": "2.0", "id": question["id"], "result": given}, session)
            assert (reply.status_code, reply.content) == (202, b"")
            result = (await anext(messages))["result"]
            assert result["content"] == [{"type": "text", "text": "red"}]
            assert [one async for one in messages] == []


async def test_a_question_to_a_client_that_accepts_only_json_fails_at_once() -> None:
    async with served() as site:
        session = await site.initialize(capabilities=FORMS)
        with anyio.fail_after(5):
            answer = await site.post(call(site, "favourite"), {**session, "Accept": "application/json"})
        assert answer.status_code == 200
        assert answer.json()["error"]["message"] == (
            "elicitation/create failed: it can't be sent, because the Accept header of the call does not list "
            "text/event-stream"
        )


async def test_a_disconnect_does_not_cancel_a_session_call() -> None:
    async with served() as site:
        session = await site.initialize()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(site.post, call(site, "wait"), session)
            await site.probe.started.wait()
            tasks.cancel_scope.cancel()
        await site.idle()
        assert not site.probe.cancelled.is_set()
        site.probe.release.set()
        await site.probe.finished.wait()
        assert (await site.post(site.message("ping"), session)).status_code == 200


async def test_the_id_of_an_abandoned_request_stays_in_use_until_answered() -> None:
    async with served() as site:
        session = await site.initialize()
        message = call(site, "wait")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(site.post, message, session)
            await site.probe.started.wait()
            assert (await site.post({**message, "method": "ping"}, session)).status_code == 400
            tasks.cancel_scope.cancel()
        await site.idle()
        assert (await site.post({**message, "method": "ping"}, session)).status_code == 400
        ping = {**message, "id": str(message["id"]), "method": "ping"}
        assert [(await site.post(ping, session)).status_code for _ in range(2)] == [200, 200]


async def test_a_cancellation_ends_its_post() -> None:
    async with served() as site:
        session = await site.initialize()
        message = call(site, "wait")
        async with calling(site, (message, session)) as answers:
            cancel = {"method": "notifications/cancelled", "params": {"requestId": message["id"]}}
            assert (await site.post({"jsonrpc": "2.0", **cancel}, session)).status_code == 202
        await site.probe.cancelled.wait()
        assert (answers[0].status_code, answers[0].content) == (200, b"")


async def test_batches_of_2025_03_26_are_answered() -> None:
    async with served() as site:
        session = await site.initialize("2025-03-26")
        batch = [site.message("ping"), call(site, "echo", {"text": "x"}), {"jsonrpc": "2.0", "method": "x"}, 5]
        answer = await site.post(batch, session)
        assert {one.get("id") for one in answer.json()} == {batch[0]["id"], batch[1]["id"], None}
        report = [call(site, "report", progressToken=1), site.message("ping")]
        async with site.stream(report, session) as stream:
            got = [one async for one in events(stream)]
        assert [isinstance(one, list) for one in got] == [False, False, True]
        silent = await site.post([{"jsonrpc": "2.0", "method": "x"}], session)
        assert (silent.status_code, silent.content) == (202, b"")
        first = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
        nested = await site.post([site.message("initialize", first)], session)
        assert nested.json()[0]["error"]["code"] == -32600
        assert (await site.post([site.message("initialize", first)])).status_code == 400


async def test_one_endpoint_serves_sessions_and_stateless_requests() -> None:
    async with served() as site:
        session = await site.initialize()
        assert (await site.call("server/discover")).status_code == 200
        assert (await site.post(site.message("tools/list"), session)).status_code == 200
        message, _ = site.stateless("tools/list")
        mixed = await site.post(message, session)
        assert (mixed.status_code, mixed.json()["error"]["code"]) == (400, -32020)


async def test_a_session_belongs_to_its_principal() -> None:
    async with served(tokens=("one", "two")) as site:
        session = await site.initialize(headers={"Authorization": "Bearer one"})
        for method in ("POST", "GET", "DELETE"):
            headers = merged({**session, "Authorization": "Bearer two"})
            answer = await site.client.request(method, "/mcp", json=site.message("ping"), headers=headers)
            assert answer.status_code == 404, method
        assert (await site.post(site.message("ping"), session)).status_code == 200


async def test_idle_sessions_expire() -> None:
    limits = EndpointLimits(keep_alive_seconds=25, sessions=SessionLimits(idle_seconds=60))
    async with served(limits=limits, patience=1_000) as site:
        session = await site.initialize()
        async with site.client.stream("GET", "/mcp", headers=merged(session)) as stream:
            lines = stream.aiter_lines()
            while await anext(lines) != "":
                pass  # the beginning of the stream
            for _ in range(3):  # comments, for longer than the lifetime of an unused session
                forward(25)
                assert [await anext(lines), await anext(lines)] == [":", ""]
            assert (await site.post(site.message("ping"), session)).status_code == 200
        closing = {"Connection": "close"}  # connections idle for so long are closed
        for seconds in (40, 40, 61):
            assert (await site.post(site.message("ping"), {**session, **closing})).status_code == 200
            await quiet()
            forward(seconds)
            await quiet()
        assert (await site.client.get("/healthz", headers=closing)).json()["sessions"] == 0
        assert (await site.post(site.message("ping"), session)).status_code == 404


async def test_the_number_of_sessions_has_a_limit() -> None:
    async with served(limits=EndpointLimits(sessions=SessionLimits(sessions=1))) as site:
        session = await site.initialize()
        info = {"name": "test", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
        refused = await site.post(site.message("initialize", params))
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "60")
        await site.client.delete("/mcp", headers=merged(session))
        await site.initialize()


async def test_a_stopping_server_finishes_running_calls() -> None:
    async with served() as site, calling(site, (call(site, "wait"), await site.initialize())) as answers:
        site.stop.set()
        site.probe.release.set()
    assert answers[0].json()["result"]["content"][0]["text"] == "released"


async def test_a_failing_session_does_not_affect_others(caplog: pytest.LogCaptureFixture) -> None:
    app = make_server()

    @app.on_unsubscribe
    async def fail(_running: object, _key: str) -> None:
        raise RuntimeError("the hook is broken")

    async with served(app) as site:
        session, other = await site.initialize(), await site.initialize()
        await site.post(site.message("resources/subscribe", {"uri": "memo://one"}), session)
        async with site.client.stream("GET", "/mcp", headers=merged(session)) as stream:
            await site.client.delete("/mcp", headers=merged(session))
            assert [one async for one in events(stream)] == []
        assert (await site.post(site.message("ping"), other)).status_code == 200
    assert "a session failed" in caplog.text


async def test_a_stopping_server_refuses_calls_after_the_drain_time() -> None:
    app = make_server()
    app.limits = Limits(drain_seconds=0.02)
    async with served(app) as site:
        session, stateless = await site.initialize(), site.stateless("tools/call", {"name": "wait", "arguments": {}})
        async with calling(site, stateless, (call(site, "wait"), session)) as answers:
            site.stop.set()
    assert [one.status_code for one in answers] == [503, 503]


async def test_a_session_ended_by_a_stop_is_unknown() -> None:
    async with make_server().open() as running, anyio.create_task_group() as tasks:
        sessions = Sessions(running, tasks, SessionLimits())
        session = sessions.open(None, "one")
        assert session is not None
        await sessions.confirm(session)
        assert not isinstance(await sessions.enter(session.id, None), Refusal)
        sessions.end_all(orderly=True)
        await quiet()
        # A slowly read body gets here after the stop.
        found = await sessions.enter(session.id, None, (1,))
        assert isinstance(found, Refusal)
        assert (found.status, len(sessions)) == (404, 0)


async def test_a_session_being_opened_counts_against_the_limit() -> None:
    async with make_server().open() as running, anyio.create_task_group() as tasks:
        sessions = Sessions(running, tasks, SessionLimits(sessions=2))
        first, second = (sessions.open(None, name) for name in ("one", "two"))
        assert isinstance(sessions.open(None, "three"), Refusal)
        assert isinstance(first, HttpSession)
        sessions.end(first)
        third = sessions.open(None, "three")
        assert isinstance(third, HttpSession)
        assert isinstance(await sessions.enter(third.id, None), Refusal)
        await sessions.confirm(third)
        assert await sessions.enter(third.id, None) == (third, True)
        assert isinstance(sessions.open(None, "four"), Refusal)
        for one in (second, third):
            assert one is not None
            sessions.end(one)
