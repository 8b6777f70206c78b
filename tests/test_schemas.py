"""The schema check catches what it is there to catch, and passes what the official examples show."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import schemas
from tests.schemas import SPEC_DIR, VERSIONS, check, requires_spec

pytestmark = requires_spec

TOOL = {"name": "read", "description": "Read.", "inputSchema": {"type": "object", "x-anything": 1}}
NEWEST = {"resultType": "complete"}
CACHED = {**NEWEST, "ttlMs": 0, "cacheScope": "private"}


def result(value: Any, **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": value, **more}


def tools(**more: Any) -> dict[str, Any]:
    return result({"tools": [{**TOOL, **more}]})


def greeting(**capabilities: Any) -> dict[str, Any]:
    info = {"name": "server", "version": "1"}
    return result({"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info})


def notice(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def error(code: int, **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "error": {"code": code, "message": "no", **more}}


TEXT = {"content": [{"type": "text", "text": "hi"}]}
ASK: dict[str, Any] = {"method": "roots/list"}

CLEAN: list[Any] = [
    *[(tools(), version, "tools/list") for version in VERSIONS[:-1]],
    *[(result(TEXT), version, "tools/call") for version in VERSIONS[:-1]],
    *[(result({}), version, "ping") for version in VERSIONS[:-1]],
    *[(error(-32700), version, None) for version in VERSIONS],
    (tools(title="Read", annotations={"readOnlyHint": True}), "2025-06-18", "tools/list"),
    (result({**CACHED, "tools": [{**TOOL, "title": "Read"}]}), "2026-07-28", "tools/list"),
    (result({**NEWEST, **TEXT, "structuredContent": [1]}), "2026-07-28", "tools/call"),
    (result({**TEXT, "structuredContent": {"any": {"title": 1}}}), "2025-06-18", "tools/call"),
    (
        result({"resultType": "input_required", "inputRequests": {"a": ASK}, "requestState": "s"}),
        "2026-07-28",
        "tools/call",
    ),
    (result({"resultType": "task", "taskId": "t"}), "2026-07-28", "tools/call"),
    (result({"resultType": "complete", "status": "working"}), "2026-07-28", "tasks/get"),
    (result({"content": [], "anything": 1}), "2025-11-25", "tasks/result"),
    ([result({}), {**tools(), "id": "1"}, error(-32600)], "2025-03-26", {1: "ping", "1": "tools/list"}),
    (notice("notifications/progress", progressToken=1, progress=0.5, message="half"), "2025-03-26", None),
    (notice("notifications/message", level="info", data={"free": [1]}), "2024-11-05", None),
    (notice("notifications/tasks", taskId="t"), "2026-07-28", None),
    (greeting(extensions={"org.example/x": {}}), "2025-11-25", "initialize"),
    ({"jsonrpc": "2.0", "id": "s-1", **ASK}, "2024-11-05", None),
    (error(-32022, data={"supported": ["2026-07-28"], "requested": "x"}), "2026-07-28", None),
]

BROKEN: list[Any] = [
    (result({**TEXT, "resultType": "complete"}), "2025-11-25", "tools/call", "$.result.resultType"),
    (result({"resultType": "complete"}), "2025-11-25", "ping", "$.result.resultType"),
    (tools(title="Read"), "2025-03-26", "tools/list", "$.result.tools[0].title"),
    (tools(annotations={}), "2024-11-05", "tools/list", "$.result.tools[0].annotations"),
    (
        tools(annotations={"readOnly": True}),
        "2025-06-18",
        "tools/list",
        "$.result.tools[0].annotations.readOnly",
    ),
    (tools(execution={}), "2026-07-28", "tools/list", "'resultType' is a required property"),
    (result({**TEXT, "structuredContent": {}}), "2025-03-26", "tools/call", "$.result.structuredContent"),
    (result({**NEWEST, **TEXT, "ttlMs": 1}), "2026-07-28", "tools/call", "$.result.ttlMs"),
    (
        result({"content": [{"type": "image", "data": "?", "mimeType": "a/b"}]}),
        "2025-11-25",
        "tools/call",
        "$.result",
    ),
    (
        result({"content": [{"type": "resource_link", "uri": "a:b", "name": "n"}]}),
        "2025-03-26",
        "tools/call",
        "$",
    ),
    (result({}), "2026-07-28", "ping", "has no such request"),
    (result({}, extra=1), "2025-06-18", "ping", "$.extra"),
    (
        notice("notifications/progress", progressToken=1, progress=1, message=""),
        "2024-11-05",
        None,
        "$.params.message",
    ),
    (notice("notifications/elicitation/complete", elicitationId="e"), "2026-07-28", None, "may not send"),
    ({"jsonrpc": "2.0", "id": 1, **ASK}, "2026-07-28", None, "may not send"),
    ({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, "2025-11-25", None, "may not send"),
    ({**error(-32700), "id": None}, "2025-11-25", None, "$.id"),
    (greeting(extension={}), "2025-11-25", "initialize", "$.result.capabilities.extension"),
    (error(-32022), "2026-07-28", None, "$.error"),
    (error(-32000, hint=1), "2025-06-18", None, "$.error.hint"),
    ([result({})], "2025-06-18", "ping", "no batches"),
    ([], "2025-03-26", None, "empty"),
]


@pytest.mark.parametrize(("message", "version", "method"), CLEAN)
def test_clean_messages_pass(message: Any, version: str, method: Any) -> None:
    check(message, version, method=method)


@pytest.mark.parametrize(("message", "version", "method", "reason"), BROKEN)
def test_broken_messages_are_named(message: Any, version: str, method: Any, reason: str) -> None:
    with pytest.raises(AssertionError) as caught:
        check(message, version, method=method)
    assert reason in str(caught.value)


def test_unknown_keys_pass_when_not_strict() -> None:
    check(tools(title="Read"), "2025-03-26", method="tools/list", strict=False)


BROKEN_EXAMPLES = {"read-resource-result-response": "lacks ttlMs and cacheScope, which its own schema requires"}


def _examples() -> Iterator[Any]:
    """Every response and notification of a server among the examples that come with the newest schema."""
    if not schemas.available():
        return
    methods = {name: method for method, name in schemas._members("2026-07-28", "ClientRequest").items()}
    notices = schemas._members("2026-07-28", "ServerNotification").values()
    for path in sorted(SPEC_DIR.glob("2026-07-28/examples/*/*.json")):
        method = methods.get(path.parent.name.replace("ResultResponse", "Request"))
        if path.parent.name in notices or (method and path.parent.name.endswith("Response")):
            broken = path.stem in BROKEN_EXAMPLES
            marks = [pytest.mark.xfail(reason=BROKEN_EXAMPLES[path.stem])] if broken else []
            yield pytest.param(path, method, id=path.stem, marks=marks)


@pytest.mark.parametrize(("path", "method"), [*_examples()])
def test_official_examples_pass(path: Path, method: str | None) -> None:
    check(json.loads(path.read_text(encoding="utf-8")), "2026-07-28", method=method)


def test_missing_schemas_fail_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(schemas, "SPEC_DIR", tmp_path)
    schemas._document.cache_clear()
    assert not schemas.available()
    with pytest.raises(AssertionError, match="MCP_SPEC_DIR"):
        schemas._document("2025-11-25")
    monkeypatch.setenv("CI", "true")
    assert schemas.wanted()


@requires_spec
@pytest.mark.parametrize("version", VERSIONS[:-1])
def test_a_client_may_send_what_a_server_may_not(version: str) -> None:
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    check(message, version, sender="Client")
    with pytest.raises(AssertionError, match="a server of"):
        check(message, version)
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"roots": [{"uri": "no URI"}]}}
    with pytest.raises(AssertionError, match=r"roots/list does not fit"):
        check(answer, version, method="roots/list", sender="Client")
