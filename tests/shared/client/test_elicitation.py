"""What becomes of a form between the user and the server."""

from typing import Any

import pytest
from pydantic import BaseModel

from shared import Context
from shared.client.handlers import completed
from shared.errors import InvalidAnswer, PeerError
from shared.protocol.types.client import ElicitResult
from shared.protocol.types.elicitation import ElicitForm
from tests.shared.client.small import Small


class Person(BaseModel):
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
def test_defaults_stand_for_what_was_left_out(answer: ElicitResult) -> None:
    assert completed(form(), answer).content == DEFAULTS


def test_what_was_given_stands() -> None:
    answer = accepted(name="", age=0, verified=False, colours=["g", "r"], mail="ada@example.org")
    given = {"name": "", "age": 0, "verified": False, "colours": ["g", "r"], "mail": "ada@example.org"}
    assert completed(form(), answer).content == {**DEFAULTS, **given}


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_only_an_accepted_form_has_content(action: Any) -> None:
    assert completed(form(), ElicitResult(action=action, content={"age": 3})).to_wire() == {"action": action}


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
def test_an_answer_that_breaks_the_form_is_named(content: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidAnswer, match=f"wrong at {path}: ") as caught:
        completed(form(), accepted(**content))
    assert "s3cret" not in str(caught.value)


def test_what_is_required_and_has_no_default_must_be_given() -> None:
    with pytest.raises(InvalidAnswer, match='wrong at its top: "mail" is a required property'):
        completed(form("name", "mail"), accepted())


@pytest.mark.parametrize("fields", [{"a": {"type": "strin"}}, {"a": {"$ref": "https://a.example"}}, {"a": True}])
def test_a_form_that_nobody_can_check_is_left_to_the_server(fields: dict[str, Any]) -> None:
    assert completed(form(**fields), accepted(a="b")).content == {"a": "b"}


def test_properties_that_are_none_have_no_defaults() -> None:
    assert ElicitForm(message="?", requested_schema={"properties": []}).defaults() == {}


@pytest.mark.parametrize("default", [None, {"a": 1}, [1], [None]])
def test_what_no_answer_can_hold_is_no_default(default: Any) -> None:
    assert completed(form(a={"default": default}), accepted(b="c")).content == {"b": "c"}


async def test_a_wrong_answer_is_told_to_both_sides(caplog: pytest.LogCaptureFixture) -> None:
    async def answer(_form: ElicitForm) -> ElicitResult:
        return accepted(name=3)

    async with Small().connected(mode="handshake", elicit=answer) as client:
        with pytest.raises(PeerError, match="refused elicitation/create"):
            await client.call_tool("greet")
    assert "the answer to a form is wrong at name: " in caplog.text
    async with Small().connected(mode="stateless", elicit=answer) as client:
        with pytest.raises(InvalidAnswer, match="wrong at name: "):
            await client.call_tool("greet")


@pytest.mark.parametrize("mode", ["handshake", "stateless"])
async def test_the_server_gets_the_defaults(mode: str) -> None:
    async def answer(_form: ElicitForm) -> ElicitResult:
        return ElicitResult(action="accept")

    async def meet(ctx: Context[None]) -> str:
        """Ask who it is."""
        return str((await ctx.ask("who", "Who?", Person)).data)

    small = Small()
    small.app.tool()(meet)
    async with small.connected(mode=mode, elicit=answer) as client:
        assert (await client.call_tool("meet")).text == "name='Ada'"
