"""Requests, results and errors over a bridge: fields forwarded unchanged, and fields specific to one connection."""

from typing import Any, cast

from servers.gateway.bridge.forwarding import error_for, identity_of, lost_error
from shared.client.errors import SessionLost, error_of_cause
from shared.errors import MissingCapability, PeerError, ResourceNotFound, RpcError, ToolError
from shared.protocol import identity
from shared.protocol.methods import Method
from shared.protocol.types.base import Params
from shared.protocol.versions import V2025_11_25
from shared.server.dispatch.context import Context
from shared.server.extension import Extension
from shared.server.features import Handler
from tests.servers.gateway.bridge.recording import Recording
from tests.servers.gateway.bridge.upstreams import EVERY_PAIR, NEW, OLD, Behind, bridged
from tests.servers.gateway.joined.members import vendors
from tests.shared.server.peer import Json, Peer
from tests.wire import NEWEST_HANDSHAKE, STATELESS

REQUESTS: dict[str, Json] = {
    "tools/call": {"name": "any", "arguments": {"a": [1, {"b": None}]}, "vendorParam": 1},
    "resources/read": {"uri": "a:b"},
    "prompts/get": {"name": "any", "arguments": {"a": "b"}},
    "completion/complete": {
        "ref": {"type": "ref/prompt", "name": "any"},
        "argument": {"name": "a", "value": "b"},
        "context": {"arguments": {"c": "d"}},
    },
    "vendor/do": {"anything": [1]},
}
TRACE = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "org.example/a": {"b": 1}}


def own(params: Json) -> Json:
    """The params without the fields of every stateless request."""
    return {name: value for name, value in params.items() if name != "_meta"}


def meta(params: Json) -> Json:
    """Its `_meta` without those fields."""
    said: Json = params.get("_meta", {})
    return {name: value for name, value in said.items() if not name.startswith("io.modelcontextprotocol/")}


async def answer(peer: Peer, method: str, **said: Any) -> Json:
    """The answer to one of `REQUESTS`."""
    if method == "vendor/do":
        return await vendors(peer, method, REQUESTS[method], **said)
    return await peer.request(method, REQUESTS[method], **said)


@EVERY_PAIR
async def test_requests_results_and_errors_are_forwarded_unchanged(version: str, mode: str) -> None:
    behind = Recording()
    async with bridged(Behind(behind.app, mode), version) as peer:
        for method, params in REQUESTS.items():
            given = dict(behind.answers[method])
            behind.answers[method] = {**given, "_meta": TRACE}
            result = (await answer(peer, method, **TRACE))["result"]
            assert (own(behind.params[-1]), meta(behind.params[-1])) == (params, TRACE)
            assert (meta(result), {name: result.get(name) for name in given}) == (TRACE, given), method
            assert set(result) - {"_meta", "resultType", "ttlMs", "cacheScope"} == set(given)
            behind.answers[method] = RpcError("not this time", code=-31_999, data={"why": [1]})
            error = (await answer(peer, method))["error"]
            assert error == {"code": -31_999, "message": "not this time", "data": {"why": [1]}}, method
        if (mode == NEW) == (version == STATELESS):  # in one era, no code has another meaning
            data = {"uri": "a:b", "more": 1}
            behind.answers["resources/read"] = RpcError("gone", code=-32602, data=data)
            assert (await answer(peer, "resources/read"))["error"]["data"] == data


async def test_a_result_for_a_session_has_no_fields_of_the_other_era() -> None:
    behind = Recording()
    async with bridged(Behind(behind.app, NEW), NEWEST_HANDSHAKE) as peer:
        for method in REQUESTS:
            result = (await answer(peer, method))["result"]
            assert result == behind.answers[method]


@EVERY_PAIR
async def test_each_connection_has_its_own_progress_tokens(version: str, mode: str) -> None:
    async def report(context: Context[None]) -> Json:
        context.link.session.progress(context.call, 1, 2, "half", TRACE)
        await context.progress(2, 2)
        return {"content": []}

    behind = Recording()
    behind.answers["tools/call"] = report
    async with bridged(Behind(behind.app, mode), version) as peer:
        await peer.request("tools/call", {"name": "any"}, progressToken="mine")
        assert behind.seen[0].call.token != "mine"
        reports = [one["params"] for one in peer.others if one["method"] == "notifications/progress"]
        half = {"progressToken": "mine", "progress": 1, "total": 2, "message": "half", "_meta": TRACE}
        assert reports == [half, {"progressToken": "mine", "progress": 2, "total": 2}]
        await peer.request("tools/call", {"name": "any"})
        assert behind.seen[1].call.token is None


@EVERY_PAIR
async def test_the_server_learns_the_identity_of_the_client(version: str, mode: str) -> None:
    behind = Recording()
    declared: Json = {"sampling": {}, "elicitation": {}, "extensions": {"org.example/view": {}}, "roots": {}}
    async with bridged(Behind(behind.app, mode), version, declared) as peer:
        await peer.call("any")
        seen = behind.seen[0].peer
        assert seen.info is not None
        assert seen.info["name"] == "wire"
        assert seen.capabilities == {**declared, "elicitation": {"form": {}}}


def test_capabilities_that_are_not_forwarded_are_not_declared() -> None:
    tasks: Json = {"tasks": {"list": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}, "sampling": {}}
    assert identity_of(identity.Peer(V2025_11_25, tasks)).capabilities == {"sampling": {}}


def test_a_client_without_a_name_gets_that_of_the_bridge() -> None:
    assert (
        identity_of(None).info["name"] == identity_of(identity.Peer(V2025_11_25)).info["name"] == "mcp-server-bundle"
    )


async def test_middleware_may_change_the_params_of_a_request() -> None:
    def around(_row: Method, handler: Handler) -> Handler:
        async def handle(running: Any, context: Context[Any], params: Any) -> Json:
            if hasattr(params, "name"):
                params = params.model_copy(update={"name": "another"})
            elif hasattr(params, "ref"):
                params = params.model_copy(update={"ref": params.ref.model_copy(update={"name": "another"})})
            return await handler(running, context, params)  # type: ignore[no-any-return]

        return handle

    behind = Recording()
    names = Extension[Any]("names", around=around)
    async with bridged(Behind(behind.app), NEWEST_HANDSHAKE, extensions=[names]) as peer:
        for method in ("tools/call", "prompts/get"):
            await answer(peer, method)
            assert own(behind.params[-1]) == {**REQUESTS[method], "name": "another"}
        await answer(peer, "completion/complete")
        assert behind.params[-1]["ref"] == {"type": "ref/prompt", "name": "another"}


async def test_a_method_of_an_extension_of_the_bridge_is_not_forwarded() -> None:
    async def handle(_running: Any, _context: Context[Any], _params: Any) -> Json:
        return {"done": "here"}

    behind = Recording()
    ours = Extension[Any]("ours", methods=[Method("vendor/do", Params)], handlers={"vendor/do": handle})
    async with bridged(Behind(behind.app), NEWEST_HANDSHAKE, extensions=[ours]) as peer:
        assert (await answer(peer, "vendor/do"))["result"] == {"done": "here"}


async def test_task_params_are_not_forwarded() -> None:
    behind = Recording()
    async with bridged(Behind(behind.app), NEWEST_HANDSHAKE) as peer:
        await peer.request("tools/call", {"name": "any", "task": {"ttl": 1}})
        assert own(behind.params[0]) == {"name": "any", "arguments": {}}


# Errors


@EVERY_PAIR
async def test_failures_take_the_form_of_the_clients_era(version: str, mode: str) -> None:
    behind, stateless = Recording(), version == STATELESS
    async with bridged(Behind(behind.app, mode), version) as peer:
        behind.answers["tools/call"] = ToolError("not today")
        result = (await peer.call("any"))["result"]
        assert (result["isError"], result["content"][0]["text"]) == (True, "not today")
        behind.answers["tools/call"] = MissingCapability({"sampling": {}})
        error = (await peer.call("any"))["error"]
        assert error["code"] == (-32021 if stateless else -32600)
        assert error["data"] == {"requiredCapabilities": {"sampling": {}}}
        behind.answers["tools/call"] = {"content": 5}
        message = "the server behind answered tools/call with a malformed result"
        assert (await peer.call("any"))["error"] == {"code": -32603, "message": message}
        behind.answers["resources/read"] = ResourceNotFound("a:b")
        error = (await peer.request("resources/read", {"uri": "a:b"}))["error"]
        code = -32602 if stateless else -32002
        assert error == {"code": code, "message": "resource not found", "data": {"uri": "a:b"}}
        if stateless and mode == OLD:  # without data it is the one that was asked for
            behind.answers["resources/read"] = RpcError("gone", code=-32002)
            error = (await peer.request("resources/read", {"uri": "a:b"}))["error"]
            assert error == {"code": -32602, "message": "gone", "data": {"uri": "a:b"}}


def test_an_undelivered_request_and_a_lost_answer_have_different_errors() -> None:
    assert (
        str(lost_error("x", SessionLost("gone")))
        == "the server x could not be reached; it did not receive the request"
    )
    of_timeout = "the server x was lost while it answered; it is unknown whether it carried out the request"
    assert str(lost_error("x", TimeoutError())) == of_timeout
    assert lost_error("x", TimeoutError()).code == -32603
    invalid = "the server x sent an invalid answer (no result); it is unknown whether it carried out the request"
    assert str(lost_error("x", error_of_cause("no result", "invalid answer"))) == invalid


def test_an_http_status_becomes_a_readable_error() -> None:
    refusal = PeerError("no entry to https://ada:secret@example.org/mcp", code=403, data={"token": "secret"})
    error = error_for(cast("Context[Any]", None), refusal, "x", stateless=True)
    assert isinstance(error, RpcError)
    assert (error.code, error.data) == (-32603, None)
    assert str(error) == "the server x refused the request: no entry to https://… (HTTP status 403)"


# Log messages


@EVERY_PAIR
async def test_log_messages_of_a_call_respect_its_level(version: str, mode: str) -> None:
    async def log(context: Context[None]) -> Json:
        for level in ("debug", "warning"):
            params = {"level": level, "data": {"is": level}, "logger": "one", "_meta": TRACE}
            context.link.session.notify(context.call, "notifications/message", params)
        return {"content": []}

    behind, wanted = Recording(), "notice"
    behind.answers["tools/call"] = log
    async with bridged(Behind(behind.app, mode), version) as peer:
        if version == STATELESS:
            await peer.request("tools/call", {"name": "any"}, **{"io.modelcontextprotocol/logLevel": wanted})
        else:
            await peer.request("logging/setLevel", {"level": wanted})
            await peer.call("any")
        told = [one["params"] for one in peer.others if one["method"] == "notifications/message"]
        assert told == [{"level": "warning", "data": {"is": "warning"}, "logger": "one", "_meta": TRACE}]
