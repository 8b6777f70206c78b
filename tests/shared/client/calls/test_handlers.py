"""Handlers of a client: answers to server requests, and notifications that they get."""

from typing import Any

import pytest
from pydantic import BaseModel

from shared import Context
from shared.client.calls.handlers import Handlers, fill_in_defaults
from shared.client.options import ClientOptions
from shared.errors import InvalidAnswer, InvalidParams, PeerError
from shared.protocol.session.client_events import Notified
from shared.protocol.types.base import Wire
from shared.protocol.types.client import CreateMessageResult, ElicitResult, Root
from shared.protocol.types.content import OtherContent, TextContent
from shared.protocol.types.elicitation import ElicitForm, ElicitUrl
from shared.protocol.types.sampling import CreateMessageParams, ToolUseContent
from tests.shared.client.connection.test_link import discovered, good, playing
from tests.shared.client.small import Small

ERAS = pytest.mark.parametrize("mode", ["handshake", "stateless"])
FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
VISIT = {"mode": "url", "message": "Pay", "url": "https://a.example/pay", "elicitationId": "1"}
ASKED = {"messages": [{"role": "user", "content": {"type": "text", "text": "?"}}], "maxTokens": 9}
CALL = {"type": "tool_use", "id": "c", "name": "add", "input": {}}
DONE = {"type": "tool_result", "toolUseId": "c", "content": []}


class Person:
    """Gives the same answer to every request, and records the requests."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[Any] = []

    async def __call__(self, question: Wire) -> Any:
        self.asked.append(question)
        return self.answer


def capabilities_of(**options: Any) -> dict[str, Any]:
    """The capabilities that a client with these options declares, without that of its cache."""
    return ClientOptions(cache_bytes=0, **options).identity().capabilities


ACCEPT = ElicitResult(action="accept", content={"name": "Ada"})
DECLINE = ElicitResult(action="decline")


def blue(*blocks: Wire) -> CreateMessageResult:
    return CreateMessageResult.of("painter", *(blocks or (TextContent(text="Blue."),)))


# Declared capabilities


@pytest.mark.parametrize(
    ("options", "declared"),
    [
        ({}, {}),
        ({"elicit": Person(ACCEPT)}, {"elicitation": {"form": {}}}),
        ({"elicit_url": Person(ACCEPT)}, {"elicitation": {"url": {}}}),
        ({"elicit": Person(ACCEPT), "elicit_url": Person(ACCEPT)}, {"elicitation": {"form": {}, "url": {}}}),
        ({"sample": Person(blue())}, {"sampling": {}}),
        ({"sample": Person(blue()), "sample_tools": True}, {"sampling": {"tools": {}}}),
        ({"sample_tools": True}, {}),
        ({"roots": []}, {"roots": {"listChanged": True}}),
    ],
)
def test_handlers_are_declared_as_capabilities(options: dict[str, Any], declared: dict[str, Any]) -> None:
    assert capabilities_of(**options) == declared


# Elicitation


async def test_the_elicit_handler_gets_a_form_model() -> None:
    person = Person(ACCEPT)
    answers = Handlers(ClientOptions(elicit=person)).input_handlers
    assert await answers["elicitation/create"](FORM) == {"action": "accept", "content": {"name": "Ada"}}
    form = person.asked[0]
    assert isinstance(form, ElicitForm)
    assert (form.message, form.requested_schema) == ("Who?", FORM["requestedSchema"])


@ERAS
async def test_a_form_can_be_declined(mode: str) -> None:
    async with Small().connected(mode=mode, elicit=Person(DECLINE)) as client:
        assert (await client.call_tool("greet")).text == "decline"


@ERAS
async def test_a_url_elicitation_reaches_its_handler(mode: str) -> None:
    async def pay(ctx: Context[None]) -> str:
        """Have the user pay."""
        return (await ctx.ask_to_visit("pay", "Pay", "https://a.example/pay")).action

    small, person = Small(), Person(ElicitResult(action="accept", content={"card": "4111"}))
    small.app.tool()(pay)
    async with small.connected(mode=mode, elicit_url=person) as client:
        assert (await client.call_tool("pay")).text == "accept"
    visit = person.asked[0]
    assert isinstance(visit, ElicitUrl)
    assert (visit.message, visit.url) == ("Pay", "https://a.example/pay")
    assert (visit.elicitation_id is None) == (mode == "stateless")


async def test_the_answer_to_a_url_elicitation_has_no_content() -> None:
    answers = Handlers(ClientOptions(elicit_url=Person(ACCEPT))).input_handlers
    assert await answers["elicitation/create"](VISIT) == {"action": "accept"}


@pytest.mark.parametrize(
    ("options", "question"),
    [
        ({"elicit": Person(ACCEPT)}, VISIT),
        ({"elicit_url": Person(ACCEPT)}, FORM),
        ({"elicit": Person(ACCEPT)}, {**FORM, "mode": "voice"}),
    ],
)
async def test_undeclared_modes_of_elicitation_are_refused(options: dict[str, Any], question: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams, match="mode of elicitation was not declared"):
        await Handlers(ClientOptions(**options)).input_handlers["elicitation/create"](question)


async def test_an_invalid_elicitation_is_refused_with_its_path() -> None:
    person = Person(ACCEPT)
    with pytest.raises(InvalidParams, match="elicitation/create is invalid at requestedSchema: "):
        await Handlers(ClientOptions(elicit=person)).input_handlers["elicitation/create"]({"message": "Who?"})
    assert person.asked == []


class Visits:
    """Handlers that accept url elicitations, and the completions that they report."""

    def __init__(self, answer: ElicitResult = ACCEPT) -> None:
        self.over: list[str] = []
        self.others: list[str] = []
        options = ClientOptions(
            elicit_url=Person(answer),
            on_visited=self.over.append,
            on_notification=lambda method, _: self.others.append(method),
        )
        self._handlers = Handlers(options)

    async def visit(self, id: str) -> None:
        await self._handlers.input_handlers["elicitation/create"]({**VISIT, "elicitationId": id})

    def tell(self, *ids: Any) -> None:
        for one in ids:
            self._handlers.on_notification(Notified("notifications/elicitation/complete", {"elicitationId": one}))


async def test_the_completion_of_an_accepted_visit_is_reported_once() -> None:
    visits = Visits()
    await visits.visit("1")
    await visits.visit("2")
    visits.tell("2", "2", "3", None, ["1"])
    assert (visits.over, visits.others) == (["2"], [])


async def test_the_completion_of_a_declined_visit_is_not_reported() -> None:
    visits = Visits(DECLINE)
    await visits.visit("1")
    visits.tell("1")
    assert visits.over == []


# Sampling


async def test_the_sample_handler_gets_a_model_of_the_conversation() -> None:
    person = Person(blue())
    asked = {
        "messages": [
            {"role": "user", "content": {"type": "text", "text": "Which colour?"}},
            {"role": "assistant", "content": [{"type": "text", "text": "Of what?"}, {"type": "shrug"}]},
        ],
        "maxTokens": 9,
        "systemPrompt": "Be brief.",
        "modelPreferences": {"hints": [{"name": "small"}], "speedPriority": 1},
        "temperature": 0,
    }
    answer = await Handlers(ClientOptions(sample=person)).input_handlers["sampling/createMessage"](asked)
    assert answer == {
        "role": "assistant",
        "content": {"type": "text", "text": "Blue."},
        "model": "painter",
        "stopReason": "endTurn",
    }
    conversation = person.asked[0]
    assert isinstance(conversation, CreateMessageParams)
    assert conversation.messages[0].blocks == [TextContent(text="Which colour?")]
    assert isinstance(conversation.messages[1].blocks[1], OtherContent)
    assert (conversation.max_tokens, conversation.system_prompt, conversation.temperature) == (9, "Be brief.", 0)
    preferences = conversation.model_preferences
    assert preferences is not None
    assert preferences.hints is not None
    assert (preferences.hints[0].name, preferences.speed_priority) == ("small", 1)


@pytest.mark.parametrize("more", [{"tools": []}, {"toolChoice": {"mode": "none"}}])
async def test_sampling_with_undeclared_tools_is_refused(more: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams, match="sampling with tools was not declared"):
        await Handlers(ClientOptions(sample=Person(blue()))).input_handlers["sampling/createMessage"](
            {**ASKED, **more}
        )


async def test_sampling_with_declared_tools_passes_them_to_the_handler() -> None:
    call = ToolUseContent(id="c", name="add", input={"a": 1})
    person = Person(CreateMessageResult.of("m", TextContent(text="Let me see."), call, stop_reason="toolUse"))
    add = {"name": "add", "inputSchema": {"type": "object"}}
    asked = {**ASKED, "tools": [add], "toolChoice": {"mode": "required"}}
    handlers = Handlers(ClientOptions(sample=person, sample_tools=True))
    answer = await handlers.input_handlers["sampling/createMessage"](asked)
    assert [block["type"] for block in answer["content"]] == ["text", "tool_use"]
    assert person.asked[0].tools[0].name == "add"
    assert person.asked[0].tool_choice.mode == "required"


def _said(role: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


TEXT = {"type": "text", "text": "?"}


@pytest.mark.parametrize(
    ("messages", "fault"),
    [
        ([_said("assistant", CALL), _said("user", DONE)], None),
        ([_said("assistant", TEXT, CALL), _said("user", DONE), _said("user", TEXT)], None),
        ([_said("assistant", CALL), _said("user", DONE, TEXT)], "mixed"),
        ([_said("assistant", CALL), _said("user", TEXT)], "lacks"),
        ([_said("assistant", CALL)], "lacks"),
        ([_said("assistant", CALL, {**CALL, "id": "d"}), _said("user", DONE)], "lacks"),
    ],
)
async def test_tool_results_in_a_conversation_must_follow_their_calls(messages: list[Any], fault: str | None) -> None:
    answer = Handlers(ClientOptions(sample=Person(blue()), sample_tools=True)).input_handlers[
        "sampling/createMessage"
    ]
    asked = {"messages": messages, "maxTokens": 9}
    if fault is None:
        assert (await answer(asked))["model"] == "painter"
    else:
        with pytest.raises(InvalidParams, match=fault):
            await answer(asked)


# Roots


@ERAS
async def test_changed_roots_are_sent(mode: str) -> None:
    known = [Root(uri="file:///a")]

    async def roots() -> list[Root]:
        return known

    async with Small().connected(mode=mode, roots=roots) as client:
        assert (await client.call_tool("roots")).text == "file:///a"
        known.append(Root(uri="file:///b"))
        client.roots_changed()
        assert (await client.call_tool("roots")).text == "file:///a file:///b"


async def test_roots_changed_notifies_only_servers_with_a_handshake() -> None:
    changed = "notifications/roots/list_changed"
    for play, mode, notifications in (
        (good, "handshake", ["notifications/initialized", changed]),
        (discovered, "stateless", []),
    ):
        async with playing(play, mode=mode, roots=[]) as (client, opened):
            client.roots_changed()
        assert opened[0].notifications == notifications


# Logs


@ERAS
async def test_log_messages_reach_on_log(mode: str) -> None:
    logged: list[Any] = []
    async with Small().connected(mode=mode, on_log=lambda *message: logged.append(message)) as client:
        await client.call_tool("count", {"to": 1})
    assert logged == [("warning", None, "counted")]


def test_invalid_log_messages_are_dropped() -> None:
    logged: list[Any] = []
    handlers = Handlers(ClientOptions(on_log=lambda *message: logged.append(message)))
    for params in ({}, {"level": 3}, {"level": "info", "logger": 7, "data": {"a": 1}}):
        handlers.on_notification(Notified("notifications/message", params))
    assert logged == [("info", None, {"a": 1})]


# Defaults and checks of forms


class Guest(BaseModel):
    name: str = "Ada"


FIELDS: dict[str, Any] = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "minimum": 0, "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "idle"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
    "colours": {"type": "array", "items": {"anyOf": [{"const": "r", "title": "Red"}, {"const": "g"}]}, "maxItems": 2},
    "mail": {"type": "string", "format": "email"},
}
DEFAULTS = {"name": "John Doe", "age": 30, "score": 95.5, "status": "active", "verified": True}


def form(*required: str, **fields: Any) -> ElicitForm:
    schema = {"type": "object", "properties": fields or FIELDS, "required": list(required)}
    return ElicitForm(message="?", requested_schema=schema)


def accepted(**content: Any) -> ElicitResult:
    return ElicitResult(action="accept", content=content)


@pytest.mark.parametrize("answer", [ElicitResult(action="accept"), accepted(), accepted(mail=None)])
def test_defaults_fill_missing_fields(answer: ElicitResult) -> None:
    assert fill_in_defaults(form(), answer).content == DEFAULTS


def test_given_fields_are_not_replaced_by_defaults() -> None:
    answer = accepted(name="", age=0, verified=False, colours=["g", "r"], mail="ada@example.org")
    given = {"name": "", "age": 0, "verified": False, "colours": ["g", "r"], "mail": "ada@example.org"}
    assert fill_in_defaults(form(), answer).content == {**DEFAULTS, **given}


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_declined_or_cancelled_form_has_no_content(action: Any) -> None:
    assert fill_in_defaults(form(), ElicitResult(action=action, content={"age": 3})).to_wire() == {"action": action}


@pytest.mark.parametrize(
    ("content", "path"),
    [
        ({"age": "old"}, "age"),
        ({"age": -1}, "age"),
        ({"score": "high"}, "score"),
        ({"status": "gone"}, "status"),
        ({"verified": "yes"}, "verified"),
        ({"colours": ["b"]}, "colours.0"),
        ({"colours": ["r", "g", "r"]}, "colours"),
        ({"mail": "s3cret"}, "mail"),
    ],
)
def test_an_invalid_answer_to_a_form_is_an_error_with_its_path(content: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidAnswer, match=f"invalid at {path}: ") as caught:
        fill_in_defaults(form(), accepted(**content))
    assert "s3cret" not in str(caught.value)


def test_a_required_field_without_default_must_be_given() -> None:
    with pytest.raises(InvalidAnswer, match='invalid at the top level: "mail" is a required property'):
        fill_in_defaults(form("name", "mail"), accepted())


@pytest.mark.parametrize("fields", [{"a": {"type": "strin"}}, {"a": {"$ref": "https://a.example"}}, {"a": True}])
def test_the_answer_to_a_form_with_an_invalid_schema_is_not_checked(fields: dict[str, Any]) -> None:
    assert fill_in_defaults(form(**fields), accepted(a="b")).content == {"a": "b"}


def test_invalid_properties_have_no_defaults() -> None:
    assert ElicitForm(message="?", requested_schema={"properties": []}).defaults() == {}


@pytest.mark.parametrize("default", [None, {"a": 1}, [1], [None]])
def test_a_default_of_a_wrong_type_is_ignored(default: Any) -> None:
    assert fill_in_defaults(form(a={"default": default}), accepted(b="c")).content == {"b": "c"}


async def test_an_invalid_answer_is_an_error_for_the_server_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def answer(_form: ElicitForm) -> ElicitResult:
        return accepted(name=3)

    async with Small().connected(mode="handshake", elicit=answer) as client:
        with pytest.raises(PeerError, match="refused elicitation/create"):
            await client.call_tool("greet")
    assert "the answer to a form is invalid at name: " in caplog.text
    async with Small().connected(mode="stateless", elicit=answer) as client:
        with pytest.raises(InvalidAnswer, match="invalid at name: "):
            await client.call_tool("greet")


@pytest.mark.parametrize(
    ("handler", "method", "params", "returns"),
    [
        ("elicit", "elicitation/create", FORM, 'ElicitResult(action="accept", content=...)'),
        ("elicit_url", "elicitation/create", VISIT, 'ElicitResult(action="accept")'),
        ("sample", "sampling/createMessage", ASKED, "CreateMessageResult(role=..., content=..., model=...)"),
    ],
)
async def test_a_handler_that_returns_a_wrong_type_raises_a_type_error(
    handler: str, method: str, params: dict[str, Any], returns: str
) -> None:
    options: Any = {handler: Person({"name": "s3cret"})}
    with pytest.raises(TypeError) as raised:
        await Handlers(ClientOptions(**options)).input_handlers[method](params)
    assert str(raised.value) == f"{handler} must return {returns}, not dict"


@ERAS
async def test_the_server_gets_the_defaults_of_a_form(mode: str) -> None:
    async def answer(_form: ElicitForm) -> ElicitResult:
        return ElicitResult(action="accept")

    async def meet(ctx: Context[None]) -> str:
        """Ask who it is."""
        return str((await ctx.ask("who", "Who?", Guest)).data)

    small = Small()
    small.app.tool()(meet)
    async with small.connected(mode=mode, elicit=answer) as client:
        assert (await client.call_tool("meet")).text == "name='Ada'"
