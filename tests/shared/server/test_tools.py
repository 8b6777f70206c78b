"""Tools: how they are declared, listed and called."""

import json
from dataclasses import replace
from inspect import Parameter
from typing import Annotated, Any

import anyio
import pytest
from pydantic import BaseModel, Field

from shared import Context, Data, Icon, Server, ToolError
from shared.errors import DeclarationError, InputRequired, InvalidParams
from shared.extensions.tasks import tasks
from shared.protocol.identity import Principal
from shared.protocol.types.tasks import TASKS
from shared.protocol.wire.jsonrpc import Notification, Request
from shared.server.extension import Extension
from shared.server.tools import make_function
from shared.tracing.trace_context import TRACEPARENT, current
from tests.quiet import quiet
from tests.shared.server.peer import ERAS, PATIENCE, server, talking
from tests.wire import Json, with_envelope


class Settings(BaseModel):
    writing: bool = False


def app_with(function, **options):
    app = server(settings=Settings)
    app.tool(**options)(function)
    return app


async def greet(name: str = "you") -> str:
    """Greets."""
    return f"hello {name}"


def listed(app, settings=None):
    return app.tools.entries(settings or Settings())


def test_name_and_description_default_to_the_function_and_its_docstring():
    (tool,) = listed(app_with(greet))
    assert (tool["name"], tool["description"]) == ("greet", "Greets.")
    said = {"name": "hello", "description": "Says hello.", "title": "Hello"}
    (tool,) = listed(app_with(greet, **said, icons=[Icon(src="data:,")], meta={"org.example/a": 1}))
    assert {name: tool[name] for name in said} == said
    assert (tool["icons"], tool["_meta"]) == ([{"src": "data:,"}], {"org.example/a": 1})
    assert server().tool()(greet) is greet  # the function stays what it was


def test_hints_are_cautious_and_omit_protocol_defaults():
    for options, hints in (
        ({}, {"destructiveHint": True, "openWorldHint": False}),
        ({"read_only": True}, {"readOnlyHint": True, "openWorldHint": False}),
        ({"destructive": False}, {"destructiveHint": False, "openWorldHint": False}),
        ({"idempotent": True}, {"destructiveHint": True, "idempotentHint": True, "openWorldHint": False}),
        ({"open_world": True}, {"destructiveHint": True}),
        ({"read_only": True, "open_world": True}, {"readOnlyHint": True}),
    ):
        (tool,) = listed(app_with(greet, **options))
        assert tool["annotations"] == hints


def test_missing_docstrings_and_duplicate_names_are_refused():
    async def silent() -> str:
        return ""

    with pytest.raises(DeclarationError, match="'silent' needs a docstring"):
        app_with(silent)
    with pytest.raises(DeclarationError, match="'greet'"):
        app_with(greet, description="x" * 2_049)
    app = app_with(greet)
    with pytest.raises(DeclarationError, match="'greet'"):
        app.tool()(greet)


def test_a_tool_can_be_removed():
    app = app_with(greet)
    assert app.tools.remove("greet")
    assert not app.tools.remove("greet")
    assert listed(app) == []


def test_tools_are_listed_in_the_order_of_their_declaration():
    app = server()
    for name in ("b", "c", "a"):
        app.tool(name=name)(greet)
    assert [tool["name"] for tool in listed(app)] == ["b", "c", "a"]


def test_an_unknown_tool_is_an_error_that_does_not_repeat_a_long_name():
    with pytest.raises(InvalidParams) as caught:
        server().tools.find("x" * 10_000, Settings())
    assert len(str(caught.value)) < 200


def needs_writing(settings):
    return None if settings.writing else "writing is off; start with --writing"


def test_an_unavailable_tool_is_not_listed_and_explains_its_refusal():
    app = app_with(greet, unavailable=needs_writing)
    assert listed(app) == []
    with pytest.raises(ToolError, match="writing is off"):
        app.tools.find("greet", Settings())
    assert len(listed(app, Settings(writing=True))) == 1
    assert app.tools.find("greet", Settings(writing=True)).name == "greet"


@pytest.mark.parametrize("version", ERAS)
async def test_a_call_returns_the_value_of_the_function(version):
    async with talking(app_with(greet), version) as peer:
        assert await peer.text("greet", name="Ada") == "hello Ada"


async def test_the_function_gets_its_context_under_any_name():
    async def who(here: Context[None]) -> str:
        """Returns the caller."""
        return f"{here.id} {here.peer.principal.key}"

    async with talking(app_with(who), principal=Principal("ada")) as peer:
        assert await peer.text("who") == "c2 ada"


async def test_a_tool_added_while_the_server_runs_can_be_called():
    app = app_with(greet)
    async with app.open() as running, talking(running) as peer:
        running.features.tool(name="later")(greet)
        assert await peer.text("later") == "hello you"


async def test_a_result_over_the_limit_is_a_tool_error():
    async def long() -> str:
        """Returns a long text."""
        return "x" * 1_000_000

    async with talking(app_with(long)) as peer:
        result = (await peer.call("long"))["result"]
        assert result["isError"]
        assert "1,000,0" in result["content"][0]["text"]


# Functions whose parameters are known at run time only

PARAMETERS = [
    Parameter("region", Parameter.KEYWORD_ONLY, annotation=Annotated[str, Field(description="where")]),
    Parameter("year", Parameter.KEYWORD_ONLY, annotation=int, default=2024),
]


async def run(context: Context[Any], arguments: dict[str, Any]) -> dict[str, Any]:
    assert isinstance(context, Context)
    return arguments


def sales_with(*parameters: Parameter):
    app = server()
    app.tool(description="Sales of a region.")(make_function(run, "sales", parameters, dict[str, Any]))
    return app


def test_the_parameters_are_listed():
    (tool,) = sales_with(*PARAMETERS).tools.entries(None)
    assert (tool["name"], tool["description"]) == ("sales", "Sales of a region.")
    assert tool["inputSchema"] == {
        "type": "object",
        "properties": {
            "region": {"type": "string", "description": "where"},
            "year": {"type": "integer", "default": 2024},
        },
        "required": ["region"],
    }


@pytest.mark.parametrize("era", ERAS)
async def test_arguments_are_checked_and_passed_on(era):
    async with talking(sales_with(*PARAMETERS), era) as peer:
        result = (await peer.call("sales", region="north"))["result"]
        wrong = await peer.call("sales", region="north", yaer=1)
    assert result["structuredContent"] == {"region": "north", "year": 2024}
    assert "did you mean 'year'?" in str(wrong)


def test_an_invalid_parameter_name_is_refused():
    with pytest.raises(DeclarationError, match="_hidden"):
        _ = sales_with(Parameter("_hidden", Parameter.KEYWORD_ONLY, annotation=str)).tools.all()[0].entry


# Tools that give their value at once are answered before their call has a task

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Twice:
    """A server whose tool `double` answers at once, except where it leaves the call to its function."""

    def __init__(self, *extensions: Extension[Any], **limits: int) -> None:
        self.tasks: list[str] = []
        """What each call ran in: the name of its task, or of the one that reads."""
        self.fails: BaseException | None = None
        self.app: Server[Any] = server(extensions=extensions)
        self.app.limits = replace(self.app.limits, **limits)
        may_be_task = any(one.name == TASKS for one in extensions)
        self.app.tool(at_once=self._at_once, task="optional" if may_be_task else None)(self.double)
        self.app.tool()(self.hold)

    def _at_once(self, ctx: Context[Any], number: int) -> Data[dict[str, int]] | None:
        if self.fails is not None:
            raise self.fails
        self.tasks.append("at once")
        return Data({"twice": 2 * number}, f"{2 * number}") if number < 1_000 else None

    async def double(self, ctx: Context[Any], number: int) -> Data[dict[str, int]]:
        """Doubles a number."""
        self.tasks.append("a task")
        return Data({"twice": 2 * number}, f"{2 * number}")

    async def hold(self) -> str:
        """Waits for ever."""
        await anyio.sleep_forever()
        return ""


def given(answer: Json) -> int:
    found: int = answer["result"]["structuredContent"]["twice"]
    return found


@pytest.mark.parametrize("version", ERAS)
async def test_a_value_given_at_once_starts_no_task_otherwise_the_function_runs(version: str) -> None:
    twice = Twice()
    async with talking(twice.app, version) as peer:
        answer = await peer.call("double", number=4)
        assert answer["result"]["content"] == [{"type": "text", "text": "8"}]
        assert (given(answer), twice.tasks) == (8, ["at once"])
        assert given(await peer.call("double", number=1_000)) == 2_000
    assert twice.tasks == ["at once", "at once", "a task"]


async def test_the_function_runs_if_the_quick_path_fails() -> None:
    for fails in (ToolError("no"), RuntimeError("a bug"), InputRequired({})):
        twice = Twice()
        twice.fails = fails
        async with talking(twice.app) as peer:
            assert given(await peer.call("double", number=4)) == 8
        assert twice.tasks == ["a task"]


async def test_invalid_arguments_of_a_quick_tool_are_reported() -> None:
    for arguments in ({"number": "four"}, {}, {"number": 1, "more": 2}):
        twice = Twice()
        async with talking(twice.app) as peer:
            answer = await peer.call("double", **arguments)
            twice.app.tools.at_once.clear()
            assert (await peer.call("double", **arguments))["result"] == answer["result"]
        assert answer["result"]["isError"]
        assert twice.tasks == []


async def test_a_too_large_value_of_a_quick_tool_is_reported() -> None:
    app = server()

    @app.tool(at_once=lambda: "x" * 2_000_000)
    async def large() -> str:
        """Is large."""
        return "x" * 2_000_000

    async with talking(app) as peer:
        result = (await peer.call("large"))["result"]
    assert result["isError"]
    assert "exceeds the limit" in result["content"][0]["text"]


async def test_a_quick_call_takes_a_slot_and_frees_it() -> None:
    twice = Twice(concurrent_calls=2)
    async with talking(twice.app) as peer:
        held = await peer.start("hold")
        for number in range(5):
            assert given(await peer.call("double", number=number)) == 2 * number
        await peer.cancel(held)
    assert twice.tasks == 5 * ["at once"]


async def test_queued_quick_calls_run_in_order_without_recursion() -> None:
    many = 1_500  # more than the interpreter lets call each other
    twice = Twice(concurrent_calls=1, waiting_calls=many, waiting_messages=many)
    async with twice.app.open() as running:
        connection = running.connect(None, lambda: None)
        connection.receive(Request("held", "tools/call", with_envelope({"name": "hold", "arguments": {}})))
        for number in range(many):
            params = with_envelope({"name": "double", "arguments": {"number": number % 7}})
            connection.receive(Request(number, "tools/call", params))
        await quiet()
        assert twice.tasks == []
        connection.receive(Notification("notifications/cancelled", {"requestId": "held"}))
        with anyio.fail_after(PATIENCE):
            answers: list[Any] = []
            while len(answers) < many:
                answers += [one.message for one in connection.outgoing() if one.message is not None]
                await quiet()
        await connection.close()
    found = [(one.id, one.result["structuredContent"]["twice"]) for one in answers]
    assert found == [(number, 2 * (number % 7)) for number in range(many)]


async def test_a_batch_of_quick_calls_is_answered_together() -> None:
    twice = Twice()
    async with talking(twice.app, "2025-03-26") as peer:
        call = {"jsonrpc": "2.0", "method": "tools/call"}
        await peer.send(
            [{**call, "id": id_, "params": {"name": "double", "arguments": {"number": id_}}} for id_ in (1, 1_000)]
        )
        answers = json.loads(await peer.end.receive_bytes())
    assert {one["id"]: one["result"]["content"][0]["text"] for one in answers} == {1: "2", 1_000: "2000"}
    assert twice.tasks == ["at once", "at once", "a task"]


async def test_a_quick_call_can_become_a_task() -> None:
    twice = Twice(tasks())
    async with talking(twice.app, capabilities={"tasks": {}}) as peer:
        params = {"name": "double", "arguments": {"number": 4}, "task": {"ttl": 10_000}}
        task = (await peer.request("tools/call", params))["result"]["task"]["taskId"]
        assert given(await peer.request("tasks/result", {"taskId": task})) == 8
        assert given(await peer.call("double", number=4)) == 8
    assert twice.tasks == ["a task", "at once"]


async def test_a_wrapping_extension_sees_all_tool_calls() -> None:
    seen = []

    def around(method: Any, handler: Any) -> Any:
        async def handled(running: Any, context: Any, params: Any) -> Any:
            seen.append(params.name)
            return await handler(running, context, params)

        return handled if method.name == "tools/call" else handler

    twice = Twice(Extension("seeing", around=around))
    async with talking(twice.app) as peer:
        await peer.call("double", number=4)
    assert (seen, twice.tasks) == (["double"], ["a task"])


async def test_an_extension_for_other_methods_keeps_calls_quick() -> None:
    def around(method: Any, handler: Any) -> Any:
        return handler if method.name == "tools/call" else lambda *given: handler(*given)

    twice = Twice(Extension("elsewhere", around=around))
    async with talking(twice.app) as peer:
        await peer.call("double", number=4)
    assert twice.tasks == ["at once"]


async def test_an_extension_may_observe_quick_answers() -> None:
    seen = []
    extension = Extension[Any]("seeing", around=lambda _method, handler: lambda *given: handler(*given))

    def around_at_once(method: Any, handler: Any) -> Any:
        def handled(running: Any, context: Any, params: Any) -> Any:
            seen.append((method.name, params.name))
            return handler(running, context, params)

        return handled

    extension.around_at_once = around_at_once
    twice = Twice(extension)
    async with talking(twice.app) as peer:
        await peer.call("double", number=4)
    assert (seen, twice.tasks) == ([("tools/call", "double")], ["at once"])


async def test_a_quick_call_has_its_own_trace() -> None:
    traces = []

    def at_once(number: int) -> str:
        traces.append(current.get())
        return str(number)

    app = server()

    @app.tool(at_once=at_once)
    async def double(number: int) -> str:
        """Is never called."""
        raise AssertionError

    async with talking(app) as peer:
        call = {"name": "double", "arguments": {"number": 4}}
        await peer.request("tools/call", call, **{TRACEPARENT: TRACE})
        await peer.request("tools/call", call)
    assert [trace and trace.trace_id for trace in traces] == [TRACE.split("-")[1], None]


async def test_an_unavailable_quick_tool_is_refused() -> None:
    app = server()

    @app.tool(at_once=lambda: "done", unavailable=lambda _: "not here")
    async def never() -> str:
        """Is never called."""
        raise AssertionError

    async with talking(app) as peer:
        result = (await peer.call("never"))["result"]
    assert (result["isError"], result["content"][0]["text"]) == (True, "not here")


async def test_quick_answers_wait_for_a_slow_peer() -> None:
    twice = Twice(waiting_messages=3)
    async with twice.app.open() as running:
        connection = running.connect(None, lambda: None)
        for number in range(10):
            params = with_envelope({"name": "double", "arguments": {"number": number}})
            connection.receive(Request(number, "tools/call", params))
        await quiet()
        assert twice.tasks == 4 * ["at once"]
        answers: list[Any] = []
        with anyio.fail_after(PATIENCE):
            while len(answers) < 10:
                answers += connection.outgoing()
                await quiet()
        await connection.close()
    assert [one.message.id for one in answers] == list(range(10))
    assert twice.tasks == 4 * ["at once"] + 6 * ["a task"]


async def test_a_call_cancelled_in_its_own_batch_is_not_made() -> None:
    twice = Twice()
    async with talking(twice.app, "2025-03-26") as peer:
        call = {"id": 1, "method": "tools/call", "params": {"name": "double", "arguments": {"number": 4}}}
        cancelled = {"method": "notifications/cancelled", "params": {"requestId": 1}}
        await peer.send([{"jsonrpc": "2.0", **one} for one in (call, cancelled, {"id": 2, "method": "ping"})])
        assert [one["id"] for one in json.loads(await peer.end.receive_bytes())] == [2]
    assert twice.tasks == []
