"""Access of principals: lists, calls and refusals, in memory and checked against the official schemas."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from shared import Context, Server
from shared.auth.policy import Entitlement, Policy, Rules
from shared.extensions.access import access
from shared.extensions.dialects import DIALECTS
from shared.extensions.tasks import tasks
from shared.protocol.identity import Principal
from shared.protocol.methods import REQUESTS as REQUESTS_OF_PROTOCOL
from shared.server.extension import Extension
from shared.testing import connected
from tests.shared.extensions.dialects.test_document_000 import Talk
from tests.shared.server.peer import ERAS, Peer, server, talking
from tests.wire import NEWEST_HANDSHAKE, STATELESS

READ = frozenset({"test:read"})
RULES = Rules(
    {
        "admin": frozenset({"test:admin", "test:write"}),
        "resource:secret": frozenset({"test:secret"}),
        "prompt:private": frozenset({"test:private"}),
    },
    {"*": Entitlement((frozenset({"test:write"}),)), "root": Entitlement()},
)


def app() -> Server[Any]:
    served = server()

    async def look() -> str:
        """Look."""
        return "seen"

    served.tool(read_only=True)(look)
    for name in ("change", "admin"):
        served.tool(name=name)(look)
    served.resource("note://one")(look)
    served.resource("secret://one", name="secret")(look)

    @served.resource("secret://{name}/more", name="more")
    async def more(name: str) -> str:
        return name

    for name in ("open", "private"):

        @served.prompt(name=name)
        async def prompt(topic: str) -> str:
            """Ask."""
            return topic

        @served.completes("prompt", name, "topic")
        async def topics(ctx: Context[Any], value: str, others: dict[str, str]) -> list[str]:
            return ["cats"]

    @served.on_subscribe
    async def subscribe(ctx: Context[Any], uri: str) -> str:
        return uri

    return served


@asynccontextmanager
async def guarded(
    rules: Rules | None = None, *, name: str = "ada", scopes: str | None = None, version: str = NEWEST_HANDSHAKE
) -> AsyncIterator[Peer]:
    principal = Principal(f"key of {name}", name, None if scopes is None else frozenset(scopes.split()))
    async with (
        app().open(extensions=[access(Policy("test", rules))]) as running,
        talking(running, version, principal=principal) as peer,
    ):
        yield peer


def refused(answer: dict[str, Any], *scopes: str) -> bool:
    """Whether `answer` is the error that names these scopes."""
    return answer.get("error", {}).get("data") == {"scopes": list(scopes)} and answer["error"]["code"] == -32600


def topic_of(name: str) -> dict[str, Any]:
    return {"ref": {"type": "ref/prompt", "name": name}, "argument": {"name": "topic", "value": ""}}


def uri_of(uri: str) -> dict[str, Any]:
    return {"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": "name", "value": ""}}


REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("tools/call", {"name": "look", "arguments": {}}),
    ("resources/read", {"uri": "note://one"}),
    ("prompts/get", {"name": "open", "arguments": {"topic": "x"}}),
    ("completion/complete", topic_of("open")),
]


@pytest.mark.parametrize("version", ERAS)
async def test_each_method_requires_a_scope(version: str) -> None:
    for method, params in REQUESTS:
        async with guarded(scopes="other:read", version=version) as peer:
            assert refused(await peer.request(method, params), "test:read")
        async with guarded(scopes="test:read", version=version) as peer:
            assert "result" in await peer.request(method, params)


@pytest.mark.parametrize("version", ERAS)
async def test_lists_require_no_scope_and_show_tools_of_missing_scopes(version: str) -> None:
    async with guarded(scopes="", version=version) as peer:
        listed = (await peer.request("tools/list"))["result"]["tools"]
        assert [tool["name"] for tool in listed] == ["look", "change", "admin"]


async def test_a_refused_writing_tool_names_all_missing_scopes() -> None:
    async with guarded(scopes="test:read") as peer:
        assert refused(await peer.call("change"), "test:write")
        assert await peer.text("look") == "seen"
        assert "unknown tool" in (await peer.call("nothing"))["error"]["message"]
    async with guarded(RULES, name="root", scopes="test:write") as peer:
        assert refused(await peer.call("admin"), "test:admin", "test:write")


async def test_a_tool_that_answers_at_once_requires_the_same_scopes() -> None:
    served, tasks = server(), []

    async def glance() -> str:
        """Look."""
        tasks.append("a task")
        return "seen"

    served.tool(read_only=True, at_once=lambda: "seen")(glance)
    for scopes, is_allowed in (("test:read", True), ("other:read", False)):
        person = Principal("key", "ada", frozenset({scopes}))
        async with (
            served.open(extensions=[access(Policy("test"))]) as running,
            talking(running, principal=person) as peer,
        ):
            answer = await peer.call("glance")
            assert ("result" in answer) == is_allowed
            assert is_allowed or refused(answer, "test:read")
    assert tasks == []


async def test_subscriptions_to_resources_require_scopes_and_to_lists_none() -> None:
    async with guarded(scopes="") as peer:
        assert refused(await peer.request("resources/subscribe", {"uri": "note://one"}), "test:read")
    async with guarded(RULES, name="root", scopes="", version=STATELESS) as peer:
        wanted = {"notifications": {"resourceSubscriptions": ["note://one", "secret://one"]}}
        assert refused(await peer.request("subscriptions/listen", wanted), "test:read", "test:secret")
        await peer.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        assert await peer.other("notifications/subscriptions/acknowledged")


async def test_a_listen_stream_omits_inaccessible_resources() -> None:
    async with guarded(RULES, version=STATELESS) as peer:
        wanted = {"resourceSubscriptions": ["note://one", "secret://one"]}
        await peer.begin("subscriptions/listen", {"notifications": wanted})
        acknowledged = await peer.other("notifications/subscriptions/acknowledged")
        assert acknowledged["params"]["notifications"]["resourceSubscriptions"] == ["note://one"]


LISTS = [
    ("tools/list", "tools", "name", ["look", "change"]),
    ("prompts/list", "prompts", "name", ["open"]),
    ("resources/list", "resources", "uri", ["note://one"]),
    ("resources/templates/list", "resourceTemplates", "uriTemplate", []),
]


@pytest.mark.parametrize("version", ERAS)
async def test_inaccessible_features_are_not_listed(version: str) -> None:
    async with guarded(RULES, version=version) as peer:
        for method, what, key, shown in LISTS:
            result = (await peer.request(method))["result"]
            assert [one[key] for one in result[what]] == shown
            assert result.get("cacheScope", "private") == "private"


async def test_the_whole_list_is_private_if_other_principals_see_less() -> None:
    rules = Rules(principals={"ada": Entitlement((READ,))})
    for name, count in (("ada", 1), ("eve", 3)):
        async with guarded(rules, name=name, version=STATELESS) as peer:
            result = (await peer.request("tools/list"))["result"]
            assert (len(result["tools"]), result["cacheScope"]) == (count, "private")


async def test_a_principal_with_its_own_rule_does_not_get_the_default_rule() -> None:
    async with guarded(RULES, name="root") as peer:
        listed = (await peer.request("tools/list"))["result"]["tools"]
        assert "admin" in [tool["name"] for tool in listed]


HIDDEN: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("tools/call", {"name": "admin", "arguments": {}}, {"name": "nimda", "arguments": {}}),
    ("prompts/get", {"name": "private", "arguments": {}}, {"name": "privado", "arguments": {}}),
    ("resources/read", {"uri": "secret://one"}, {"uri": "public://one"}),
    ("completion/complete", topic_of("private"), topic_of("privado")),
    ("completion/complete", uri_of("secret://{name}/more"), uri_of("public://{name}/more")),
]


@pytest.mark.parametrize("version", ERAS)
async def test_inaccessible_features_give_the_same_errors_as_unknown_ones(version: str) -> None:
    async with guarded(RULES, version=version) as peer:
        for method, hidden, unknown in HIDDEN:
            errors = [str((await peer.request(method, params))["error"]) for params in (hidden, unknown)]
            for word, other in [("nimda", "admin"), ("privado", "private"), ("public", "secret")]:
                errors = [text.replace(word, other) for text in errors]
            assert errors[0] == errors[1]


@pytest.mark.parametrize("method", ["tools/call", "prompts/get"])
async def test_errors_suggest_no_inaccessible_names(method: str) -> None:
    for name, names in (("ada", ("admins", "privates", "changes", "opens")), ("root", ("admins", "privates"))):
        async with guarded(RULES, name=name) as peer:
            errors = [(await peer.request(method, {"name": near, "arguments": {}}))["error"] for near in names]
        proposed = {error["message"].partition("did you mean ")[2] for error in errors} - {""}
        visible = (
            {"ada": {"'change'?"}, "root": {"'admin'?"}}
            if method == "tools/call"
            else {"ada": {"'open'?"}, "root": {"'private'?"}}
        )
        assert proposed == visible[name]


async def test_scopes_of_a_token_do_not_exceed_the_rules_of_the_operator() -> None:
    async with guarded(RULES, scopes="* test:admin test:write") as peer:
        assert "unknown tool" in (await peer.call("admin"))["error"]["message"]


async def test_without_rules_and_scopes_everything_is_allowed() -> None:
    async with guarded() as peer:
        assert await peer.text("admin") == "seen"


async def test_each_request_of_a_batch_is_checked_separately() -> None:
    async with guarded(scopes="test:read", version="2025-03-26") as peer:
        requests = [("a", "look"), ("b", "change")]
        await peer.send(
            [
                {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name, "arguments": {}}}
                for number, name in requests
            ]
        )
        with anyio.fail_after(20):
            answers = {one["id"]: one for one in json.loads(await peer.end.receive_bytes())}
        assert "result" in answers["a"]
        assert refused(answers["b"], "test:write")


async def test_a_custom_method_requires_the_write_scope() -> None:
    served = app()

    @served.method("test/own")
    async def own(ctx: Context[Any], params: Any) -> dict[str, Any]:
        return {}

    principal = Principal("a", scopes=READ)
    async with (
        served.open(extensions=[access(Policy("test"))]) as running,
        talking(running, principal=principal) as peer,
    ):
        assert refused(await peer.request("test/own"), "test:write")


async def test_handlers_added_by_a_lifespan_run_after_the_access_check() -> None:
    """A principal without the scope reaches no handler, not even one that a lifespan has added."""
    done: list[str] = []

    def around(method: Any, handler: Any) -> Any:
        async def handle(running: Any, context: Any, params: Any) -> Any:
            done.append(method.name)
            return await handler(running, context, params)

        return handle

    served = app()

    @served.lifespan
    async def living(opening: Any) -> AsyncIterator[None]:
        opening.extend(Extension("late", around=around))
        yield None

    async with (
        served.open(extensions=[access(Policy("test"))]) as running,
        talking(running, principal=Principal("a", scopes=frozenset())) as peer,
    ):
        await peer.call("look")
    assert done == []


async def test_a_refused_call_creates_no_task() -> None:
    served = server(extensions=[tasks()])

    @served.tool(task="required")
    async def work() -> str:
        """Work."""
        return "done"

    capabilities = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    async with (
        served.open(extensions=[access(Policy("test"))]) as running,
        talking(running, STATELESS, capabilities, principal=Principal("a", scopes=READ)) as peer,
    ):
        assert refused(await peer.call("work"), "test:write")


@pytest.mark.parametrize("version", ERAS)
async def test_reading_a_task_requires_the_scopes_of_its_call(version: str) -> None:
    served = server(extensions=[tasks()])

    @served.tool(task="required")
    async def work() -> str:
        """Work."""
        return "done"

    able = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    params: dict[str, Any] = {"name": "work", "arguments": {}}
    if version != STATELESS:
        params["task"] = {}
    async with served.open(extensions=[access(Policy("test"))]) as running:
        full, little = (Principal("a", scopes=frozenset({scope})) for scope in ("test:write", "test:read"))
        async with (
            talking(running, version, able, principal=full) as owner,
            talking(running, version, able, principal=little) as other,
        ):
            created = (await owner.request("tools/call", params))["result"]
            named = {"taskId": created.get("task", created)["taskId"]}
            ways = ["tasks/get", "tasks/cancel", "tasks/update" if version == STATELESS else "tasks/result"]
            for way in ways:
                assert refused(await other.request(way, {**named, "inputResponses": {}}), "test:write")
            assert "result" in await owner.request("tasks/get", named)
            if version != STATELESS:
                assert not (await other.request("tasks/list"))["result"]["tasks"]
                assert len((await owner.request("tasks/list"))["result"]["tasks"]) == 1


@asynccontextmanager
async def in_dialect(rules: Rules | None, principal: Principal) -> AsyncIterator[Talk]:
    async with (
        app().open(extensions=[DIALECTS, access(Policy("test", rules))]) as running,
        connected(running, principal=principal, dialects=True) as end,
    ):
        yield Talk(end)


async def test_a_dialect_lists_only_accessible_features() -> None:
    async with in_dialect(RULES, Principal("a", "ada")) as talk:
        assert [one["name"] for one in await talk.ask("mcp/listTools")] == ["look", "change"]
        assert [one["resourceId"] for one in await talk.ask("mcp/listResources")] == ["note://one"]
        error = await talk.ask("mcp/tool/execute", {"toolId": "admin", "inputs": {}})
        assert error["message"] == "unknown tool: admin"
    async with (
        app().open(extensions=[DIALECTS, access(Policy("test", RULES))]) as running,
        connected(running, principal=Principal("a", "ada"), dialects=True) as end,
    ):
        await end.send_bytes(b'{"method": "initialize", "params": {"version": "0.6.0"}, "id": 1}')
        result = json.loads(await end.receive_bytes())["result"]
    assert [tool["name"] for tool in result["tools"]] == ["look", "change"]
    assert [prompt["name"] for prompt in result["prompts"]] == ["open"]


async def test_a_call_in_a_dialect_requires_the_scopes_of_the_tool() -> None:
    for tool, scope, needed in (
        ("look", "test:read", None),
        ("admin", "test:write", ["test:admin", "test:write"]),
        ("look", "no", ["test:read"]),
        ("change", "test:read", ["test:write"]),
    ):
        async with in_dialect(Rules(RULES.scopes), Principal("a", scopes=frozenset({scope}))) as talk:
            answer = await talk.ask("mcp/tool/execute", {"toolId": tool, "inputs": {}})
            assert answer == "seen" if needed is None else answer["data"] == {"scopes": needed}


async def test_a_rule_for_an_unknown_tool_is_logged_with_a_suggestion(caplog: pytest.LogCaptureFixture) -> None:
    rules = Rules({"chang": READ, "look": READ, "prompt:any": READ, "resource:any": READ})
    async with app().open(extensions=[access(Policy("test", rules))]):
        pass
    assert [record.getMessage() for record in caplog.records] == [
        "scopes: there is no tool 'chang' in test; did you mean 'change'?"
    ]


async def test_a_running_server_reports_all_and_required_scopes() -> None:
    async with app().open(extensions=[access(Policy("test", RULES))]) as running:
        known = ["test:admin", "test:private", "test:read", "test:secret", "test:write"]
        found = running.extensions[-1].scopes
        assert found is not None
        assert found(running) == (known, ["test:read"])


async def test_a_proxy_server_reports_the_read_and_write_scopes() -> None:
    async def call(running: Any, context: Any, params: Any) -> dict[str, Any]:
        return {"content": []}

    row = next(row for row in REQUESTS_OF_PROTOCOL if row.name == "tools/call")
    handing_on = Extension[Any]("handing on", methods=[row], handlers={"tools/call": call})
    async with server(extensions=[handing_on]).open(extensions=[access(Policy("test"))]) as running:
        found = running.extensions[-1].scopes
        assert found is not None
        assert found(running) == (["test:read", "test:write"], ["test:read"])
