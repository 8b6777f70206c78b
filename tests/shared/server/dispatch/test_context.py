"""Questions, progress and log messages of a handler, in both eras.

tests/transcripts shows them on the wire: asking, rounds, progress and logging.
"""

import asyncio
import datetime as dt
import re
from dataclasses import replace
from enum import Enum
from functools import partial
from typing import Annotated, Any, Literal

import anyio
import pytest
from pydantic import BaseModel, Field, create_model

from shared import Context, MissingCapability, ToolError
from shared.errors import AnswerTimeout, DeclarationError
from shared.protocol.session.questions import elicit_form
from shared.protocol.shaping import shape_request
from shared.protocol.versions import V2025_11_25
from shared.server.dispatch.connection import serve
from shared.server.dispatch.context import form_schema
from shared.server.dispatch.turns import MAX_CONCURRENT
from shared.transports.memory import memory_pair
from tests import schemas
from tests.clock import forward
from tests.quiet import quiet
from tests.shared.server.peer import ERAS, NEWEST_HANDSHAKE, PATIENCE, STATELESS, Peer, server, talking

ALL = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
MESSAGES = {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 5}
BLUE = {"role": "assistant", "content": {"type": "text", "text": "blue"}, "model": "m"}
ROOTS = {"roots": [{"uri": "file:///home", "name": "home"}]}
FILLED = {"content": {"dish": "soup"}}
ACCEPTED = {"action": "accept", **FILLED}


class Order(BaseModel):
    dish: Literal["soup", "salad"]
    portions: int = Field(default=1, ge=1)


def app_with(function: Any, **options: Any) -> Any:
    app = server(**options)
    app.tool()(function)
    return app


async def asked(peer, name, answers):
    """The answer to a call of a tool that asks; `answers` are results by method."""
    params = {"name": name, "arguments": {}}
    if peer.version == STATELESS:
        return await _asked_in_rounds(peer, params, answers)
    id_ = await peer.begin("tools/call", params)
    while "method" in (message := await peer.receive()):
        if "id" in message:
            await peer.reply(message["id"], answers[message["method"]])
    assert message["id"] == id_
    return message


async def _asked_in_rounds(peer, params, answers):
    while True:
        answer = await peer.request("tools/call", params)
        result = answer.get("result", {})
        if result.get("resultType") != "input_required":
            return answer
        responses = {key: answers[one["method"]] for key, one in result["inputRequests"].items()}
        params = {**params, "inputResponses": responses, "requestState": result["requestState"]}


async def said(function, answers, version):
    async with talking(app_with(function), version, ALL) as peer:
        answer = await asked(peer, function.__name__, answers)
    return answer["result"]["content"][0]["text"]


# Asking, the same handler in both eras


async def order(ctx: Context[None]) -> str:
    """Asks for a form."""
    answer = await ctx.ask("order", "What?", Order)
    return f"{answer.action} {answer.data}"


async def test_an_unanswered_question_is_cancelled():
    app = app_with(order)
    app.limits = replace(app.limits, question_seconds=120.0)
    async with talking(app, NEWEST_HANDSHAKE, ALL) as peer:
        call = await peer.start("order")
        question = await peer.other("elicitation/create")
        forward(119.0)
        await quiet()
        forward(2.0)
        assert (await peer.other("notifications/cancelled"))["params"]["requestId"] == question["id"]
        result = (await peer.answer(call))["result"]
    assert result["isError"]
    assert "no one answered the question within 120 s" in result["content"][0]["text"]


async def test_an_unanswered_question_is_cancelled_while_its_call_continues():
    is_cancelled = anyio.Event()

    async def patient(ctx: Context[None]) -> None:
        """Goes on without an answer."""
        with pytest.raises(AnswerTimeout):
            await ctx.ask("order", "What?", Order)
        await is_cancelled.wait()

    async with talking(app_with(patient), NEWEST_HANDSHAKE, ALL) as peer:
        call = await peer.start("patient")
        await peer.other("elicitation/create")
        forward(600.0)
        await peer.other("notifications/cancelled")
        is_cancelled.set()
        assert not (await peer.answer(call))["result"].get("isError")


@pytest.mark.parametrize("version", ERAS)
async def test_every_question_may_be_asked_in_a_task_group(version):
    async def everything(ctx: Context[None]) -> str:
        """Asks in a task group."""
        found = []

        async def one() -> None:
            found.append((await ctx.ask("order", "What?", Order)).data.dish)
            found.append((await ctx.ask_to_visit("v", "Please.", "https://example.org")).action)
            found.append((await ctx.sample("c", MESSAGES)).text)
            found.append((await ctx.roots())[0].name)

        async with anyio.create_task_group() as group:
            group.start_soon(one)
        return " ".join(found)

    answers = {"elicitation/create": ACCEPTED, "roots/list": ROOTS, "sampling/createMessage": BLUE}
    assert await said(everything, answers, version) == "soup accept blue home"


@pytest.mark.parametrize("version", ERAS)
async def test_a_handler_may_catch_a_missing_capability(version):
    async def modest(ctx: Context[None]) -> str:
        """Asks if it may."""
        try:
            return (await ctx.roots())[0].uri
        except MissingCapability:
            return "nowhere"

    async with talking(app_with(modest), version) as peer:
        assert await peer.text("modest") == "nowhere"


async def test_a_refused_question_ends_the_call_without_the_clients_message():
    async with talking(app_with(order), NEWEST_HANDSHAKE, ALL) as peer:
        id_ = await peer.start("order")
        question = await peer.receive()
        error = {"code": -1, "message": "rejected"}
        await peer.send({"jsonrpc": "2.0", "id": question["id"], "error": error})
        answer = await peer.answer(id_)
        assert answer["error"] == {"code": -32603, "message": "the client refused elicitation/create"}
        id_ = await peer.start("order")
        question = await peer.receive()
        no_unicode = {"action": "accept", "content": {"colour": "\ud83d"}}
        await peer.reply(question["id"], no_unicode)
        assert (await peer.answer(id_))["error"]["code"] == -32603
        id_ = await peer.start("order")
        await peer.reply((await peer.receive())["id"], {"action": "accept"})  # without content
        assert (await peer.answer(id_))["error"]["code"] == -32602


async def test_answers_in_any_order_reach_their_calls():
    async with talking(app_with(order), NEWEST_HANDSHAKE, ALL) as peer:
        calls = [await peer.start("order") for _ in range(3)]
        questions = [await peer.other("elicitation/create") for _ in calls]
        for number in (1, 2, 0):
            await peer.reply(questions[number]["id"], {"action": ("accept", "decline", "cancel")[number], **FILLED})
            text = (await peer.answer(calls[number]))["result"]["content"][0]["text"]
            assert text.split()[0] == ("accept", "decline", "cancel")[number]


async def test_answers_are_stored_only_while_their_calls_wait():
    app = app_with(order)
    async with app.open() as running, talking(running, NEWEST_HANDSHAKE, ALL) as peer:
        (link,) = running.changes.listeners
        answered, cancelled = [await peer.start("order") for _ in range(2)]
        ids = [(await peer.other("elicitation/create"))["id"] for _ in range(2)]
        await peer.cancel(cancelled)
        for id_ in ids:
            await peer.reply(id_, ACCEPTED)
        await peer.answer(answered)
        await quiet()
        assert link.answers._by_id is None


async def test_a_question_is_cancelled_when_the_handler_stops_waiting():
    async def impatient(ctx: Context[None]) -> str:
        """Waits for a moment."""
        with anyio.move_on_after(0):
            await ctx.roots()
        return "went on"

    async with talking(app_with(impatient), NEWEST_HANDSHAKE, ALL) as peer:
        assert await peer.text("impatient") == "went on"
        methods = [message["method"] for message in peer.others]
    assert methods[-1:] == ["notifications/cancelled"]


@pytest.mark.parametrize("version", ERAS)
async def test_progress_arrives_while_the_call_runs(version):
    told = anyio.Event()

    async def slow(ctx: Context[None]) -> str:
        """Reports, and waits."""
        await ctx.progress(1, 2, "half")
        await told.wait()
        return ""

    async with talking(app_with(slow), version) as peer:
        await peer.begin("tools/call", {"name": "slow"}, progressToken="t")
        report = await peer.other("notifications/progress")
        told.set()
    assert report["params"] == {"progressToken": "t", "progress": 1, "total": 2, "message": "half"}


# Failing


@pytest.mark.parametrize("version", ERAS)
async def test_an_error_raised_in_a_task_counts_as_raised(version):
    async def tasks() -> str:
        """Fails in a task group."""

        async def one() -> None:
            raise ToolError("no paper")

        async with anyio.create_task_group() as group:
            group.start_soon(one)
        return ""

    async with talking(app_with(tasks), version) as peer:
        result = (await peer.call("tasks"))["result"]
    assert (result["isError"], result["content"][0]["text"]) == (True, "no paper")


async def test_an_unexpected_error_is_logged_and_sent_without_detail(caplog):
    async def crash() -> str:
        """Crashes."""
        raise RuntimeError("secret")

    async with talking(app_with(crash)) as peer:
        answer = await peer.call("crash")
    assert answer["error"] == {"code": -32603, "message": "internal error"}
    assert "secret" in caplog.text


async def test_errors_of_the_author_may_be_translated():
    class Jam(Exception):
        pass

    class SmallJam(Jam):
        pass

    async def prints() -> str:
        """Jams."""
        raise SmallJam("tray 2")

    app = app_with(prints)
    app.error(Jam)(lambda error: ToolError(f"paper jam: {error}"))
    async with talking(app) as peer:
        assert await peer.text("prints") == "paper jam: tray 2"


async def test_the_state_is_what_the_lifespan_yielded():
    async def state(ctx: Context[list[str]]) -> str:
        """Returns its state."""
        return str(ctx.state)

    log = ["begun"]
    app = app_with(state)

    @app.lifespan
    async def opening(settings):
        yield log
        log.append("ended")

    async with talking(app) as peer:
        assert await peer.text("state") == "['begun']"
    await quiet()
    assert log == ["begun", "ended"]


# Models as forms


class Colour(Enum):
    RED = "red"


class Inner(BaseModel):
    a: int


def form(kind, default=...):
    return create_model("Form", field=(kind, default))


def field(kind, default=...):
    return form_schema(form(kind, default))["properties"]["field"]


FITTING = [
    (str, {"type": "string"}),
    (Annotated[str, Field(min_length=1, max_length=5)], {"type": "string", "minLength": 1, "maxLength": 5}),
    (Annotated[str, Field(description="Why", title="T")], {"type": "string", "description": "Why", "title": "T"}),
    (dt.date, {"type": "string", "format": "date"}),
    (dt.datetime, {"type": "string", "format": "date-time"}),
    (int, {"type": "integer"}),
    (Annotated[float, Field(ge=0, le=1)], {"type": "number", "minimum": 0, "maximum": 1}),
    (bool, {"type": "boolean"}),
    (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
    (Literal["a"], {"type": "string", "enum": ["a"]}),
    (list[Literal["a", "b"]], {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}),
    (Colour, {"type": "string", "enum": ["red"]}),
    (list[Colour], {"type": "array", "items": {"type": "string", "enum": ["red"]}}),
]


def test_supported_form_fields():
    assert [(kind, field(kind)) for kind, _ in FITTING] == FITTING


@schemas.requires_spec
def test_forms_fit_the_official_schema():
    for kind, _ in FITTING:
        question = elicit_form("?", form_schema(form(kind)))
        params = shape_request(question.method, question.params, V2025_11_25)
        schemas.check({"jsonrpc": "2.0", "id": 1, "method": question.method, "params": params}, "2025-11-25")


def test_unsupported_form_fields_are_refused_by_name():
    for kind in (
        *(
            Inner,
            Literal[1, 2],
            Literal[1],
            dict[str, int],
            list[str],
            list[int],
            int | str,
            dt.timedelta,
            dt.time,
            bytes,
        ),
        *(Annotated[int, Field(gt=0)], Annotated[int, Field(multiple_of=2)], Annotated[str, Field(pattern="a")]),
    ):
        with pytest.raises(DeclarationError, match=r"Form\.field"):
            form_schema(form(kind))


UNSUITABLE = [
    (form(Annotated[int, Field(gt=0)]), "a form can't show exclusiveMinimum; use ge="),
    (form(Annotated[str, Field(pattern="a")]), "a form can't show pattern; check the value in the tool"),
    (form(Inner), "a form may have only strings, numbers, booleans and choices; use str, int, float, bool, Literal"),
    (form(Literal[1, 2]), "choices must be strings, such as Literal"),
    (str, "a form is a pydantic model, not <class 'str'>: declare a class with a field"),
    ({"name": str}, "a form is a pydantic model, not {'name'"),
]


@pytest.mark.parametrize(("kind", "reason"), UNSUITABLE)
def test_an_unsuitable_form_type_is_refused_with_an_alternative(kind: Any, reason: str):
    with pytest.raises(DeclarationError, match=re.escape(reason)):
        form_schema(kind)


@pytest.mark.parametrize("version", ERAS)
async def test_an_answer_is_a_member_of_an_enum(version):
    async def paint(ctx: Context[None]) -> str:
        """Asks for a colour."""
        answer = await ctx.ask("colour", "Which?", create_model("Paint", field=(Colour, Colour.RED)))
        return repr(answer.data.field is Colour.RED)

    answer = {"action": "accept", "content": {"field": "red"}}
    assert await said(paint, {"elicitation/create": answer}, version) == "True"


def test_a_field_with_a_default_is_not_required():
    assert form_schema(form(int, 5)) == {"type": "object", "properties": {"field": {"type": "integer", "default": 5}}}
    assert form_schema(form(int))["required"] == ["field"]
    assert field(str | None, None) == {"type": "string"}  # it may be left out


async def test_consent_is_bound_to_its_question() -> None:
    acts, version = list[int](), [1]

    async def act(ctx: Context[Any]) -> str:
        """Act on the present version."""
        await ctx.confirm("Replace the file?", version[0])
        acts.append(version[0])
        return "done"

    async with talking(app_with(act), STATELESS, ALL) as peer:
        asked = (await peer.call("act"))["result"]
        accepted = {key: {"action": "accept", "content": {}} for key in asked["inputRequests"]}
        version[0] = 2
        again = {"requestState": asked["requestState"], "inputResponses": accepted}
        answer = (await peer.request("tools/call", {"name": "act", "arguments": {}, **again}))["result"]
        assert answer["resultType"] == "input_required"
        assert acts == []


@pytest.mark.parametrize("version", ERAS)
async def test_confirm_returns_true_after_consent(version):
    async def act(ctx: Context[None]) -> str:
        """Acts."""
        return "done" if await ctx.confirm("Act?") else "not done"

    assert await said(act, {"elicitation/create": {"action": "accept"}}, version) == "done"


@pytest.mark.parametrize("version", ERAS)
async def test_a_key_that_names_two_questions_is_an_error(version, caplog):
    async def ask_twice(ctx: Context[None]) -> str:
        """Asks twice by one key."""
        first = await ctx.ask("key", "A dish?", Order)
        second = await ctx.ask("key", "Another dish?", Order)
        return f"{first} {second}"

    async with talking(app_with(ask_twice), version, ALL) as peer:
        answer = await asked(peer, "ask_twice", {"elicitation/create": ACCEPTED})
    assert answer["error"]["message"] == "internal error"
    assert "the key 'key' names two different questions in one call" in caplog.text


@pytest.mark.parametrize("version", ERAS)
async def test_the_same_question_may_be_asked_again(version):
    async def ask_again(ctx: Context[None]) -> str:
        """Asks again."""
        await ctx.ask("key", "A dish?", Order)
        await ctx.ask("key", "A dish?", Order)
        await ctx.ask_to_visit("page", "Log in", "https://example.com")
        await ctx.ask_to_visit("page", "Log in", "https://example.com")
        return "done"

    assert await said(ask_again, {"elicitation/create": ACCEPTED}, version) == "done"


@pytest.mark.parametrize("version", ERAS)
async def test_a_call_that_forgets_to_await_its_question_fails(version, caplog):
    async def delete(ctx: Context[None]) -> str:
        """Deletes without consent."""
        ctx.confirm("Delete it?")  # type: ignore[unused-coroutine]
        return "deleted"

    async with talking(app_with(delete), version, ALL) as peer:
        assert (await peer.call("delete"))["error"]["message"] == "internal error"
    assert "ctx.confirm was not awaited" in caplog.text


async def test_a_call_fails_if_a_plain_function_reports_progress_without_the_loop(caplog):
    def work(ctx: Context[None]) -> str:
        """Works in a thread."""
        ctx.progress(1, 2)  # type: ignore[unused-coroutine]
        return "done"

    async with talking(app_with(work)) as peer:
        assert (await peer.call("work"))["error"]["message"] == "internal error"
    assert "ctx.progress was not awaited in tool 'work', so its call fails" in caplog.text


async def test_an_unknown_log_level_is_refused_with_the_levels():
    async def work(ctx: Context[None]) -> str:
        """Logs."""
        with pytest.raises(ValueError, match=r"ctx\.log has no level 'warn'; levels: debug, info, notice, warning"):
            await ctx.log("warn", "late")  # type: ignore[arg-type]
        return "done"

    async with talking(app_with(work)) as peer:
        assert await peer.text("work") == "done"


async def test_a_plain_function_reports_progress_by_the_loop():
    def work(ctx: Context[None]) -> str:
        """Works in a thread."""
        anyio.from_thread.run(ctx.progress, 1, 2)
        return "done"

    async with talking(app_with(work)) as peer:
        id_ = await peer.begin("tools/call", {"name": "work", "arguments": {}}, progressToken="p")
        assert "result" in await peer.answer(id_)
        assert [message["method"] for message in peer.others] == ["notifications/progress"]


async def test_a_question_may_be_a_task_of_its_own():
    async def ask_in_task(ctx: Context[None]) -> str:
        """Asks in a task."""
        await asyncio.gather(ctx.confirm("One?"), asyncio.create_task(ctx.confirm("Two?")))
        return "done"

    assert await said(ask_in_task, {"elicitation/create": {"action": "accept"}}, NEWEST_HANDSHAKE) == "done"


async def test_an_error_without_elicitation_names_no_option_the_server_lacks():
    async def act(ctx: Context[None]) -> str:
        """Acts."""
        await ctx.confirm("Act?")
        return "done"

    async with talking(app_with(act)) as peer:
        text = await peer.text("act")
    assert text.endswith("Use a client that supports form elicitation.")


@pytest.mark.parametrize("capabilities", [{}, {"logging": {}}])
async def test_a_log_message_that_no_client_receives_is_reported_once(capabilities, caplog):
    async def work(ctx: Context[None]) -> str:
        """Works."""
        await ctx.log("info", "one")
        await ctx.log("info", "two")
        return "done"

    async with talking(app_with(work, capabilities=capabilities)) as peer:
        await peer.call("work")
    assert caplog.text.count("no client receives `ctx.log`") == (0 if capabilities else 1)


# Turns


async def test_brief_work_does_not_wait_for_other_work():
    app, gate = server(), anyio.Event()

    @app.tool
    async def work(ctx: Context[None], brief: bool) -> str:
        """Works in a turn."""
        async with ctx.turn(brief=brief):
            if not brief:
                await gate.wait()
        return "done"

    async with talking(app) as peer:
        waiting = [await peer.start("work", brief=False) for _ in range(MAX_CONCURRENT + 1)]
        assert await peer.text("work", brief=True) == "done"
        gate.set()
        for id_ in waiting:
            await peer.answer(id_)


async def test_one_client_cannot_take_all_turns():
    app, gate = server(), anyio.Event()
    pairs = {"ann": memory_pair(), "bob": memory_pair()}

    @app.tool
    async def work(ctx: Context[None], name: str) -> str:
        """Works in a turn."""
        async with ctx.turn():
            if name == "ann":
                await gate.wait()
        return "done"

    with anyio.fail_after(PATIENCE):
        async with app.open() as running, anyio.create_task_group() as tasks:
            for client, (_, theirs) in pairs.items():
                tasks.start_soon(partial(serve, running, theirs, client=client))
            ann, bob = (Peer(ours, STATELESS, {}) for ours, _ in pairs.values())
            waiting = [await ann.start("work", name="ann") for _ in range(MAX_CONCURRENT)]
            assert await bob.text("work", name="bob") == "done"
            gate.set()
            for id_ in waiting:
                await ann.answer(id_)
            for ours, theirs in pairs.values():
                ours.close()
                theirs.close()
