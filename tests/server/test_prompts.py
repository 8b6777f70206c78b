"""Prompts: how they are declared, listed and rendered."""

from typing import Annotated

import pytest
from pydantic import Field

from shared import Context, ImageContent, PromptMessage, TextContent
from shared.errors import DeclarationError, InvalidParams
from shared.protocol.types.prompts import GetPromptResult
from tests.server.peer import ERAS, server, talking


async def greet(name: Annotated[str, Field(description="Whom")], times: int = 1) -> str:
    """Greets somebody."""
    return f"hello {name}" * times


def app_with(function, **options):
    app = server()
    app.prompt(**options)(function)
    return app


async def rendered(function, **arguments):
    async with talking(app_with(function)) as peer:
        return await peer.request("prompts/get", {"name": function.__name__, "arguments": arguments})


def test_a_prompt_is_listed_with_its_arguments():
    (prompt,) = app_with(greet, title="Greeting").prompts.listed()
    assert prompt == {
        "name": "greet",
        "title": "Greeting",
        "description": "Greets somebody.",
        "arguments": [
            {"name": "name", "description": "Whom", "required": True},
            {"name": "times", "required": False},
        ],
    }


def test_a_prompt_needs_a_docstring():
    async def silent() -> str:
        return ""

    with pytest.raises(DeclarationError, match="'silent' needs a docstring"):
        app_with(silent)


def test_a_name_can_be_taken_once():
    app = app_with(greet)
    with pytest.raises(DeclarationError, match="'greet' already"):
        app.prompt()(greet)


def test_a_prompt_can_be_removed():
    app = app_with(greet)
    assert (app.prompts.remove("greet"), app.prompts.remove("greet")) == (True, False)


def test_an_unknown_prompt_is_an_error():
    with pytest.raises(InvalidParams, match="unknown prompt: none"):
        server().prompts.find("none")


@pytest.mark.parametrize("version", ERAS)
async def test_text_becomes_a_message_of_the_user(version):
    async with talking(app_with(greet), version) as peer:
        answer = await peer.request("prompts/get", {"name": "greet", "arguments": {"name": "Ada"}})
    message = {"role": "user", "content": {"type": "text", "text": "hello Ada"}}
    assert answer["result"]["messages"] == [message]
    assert answer["result"]["description"] == "Greets somebody."


async def test_arguments_are_texts_that_may_stand_for_other_types():
    answer = await rendered(greet, name="a", times="2")
    assert answer["result"]["messages"][0]["content"]["text"] == "hello ahello a"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "name: Field required"),
        ({"name": "a", "times": "two"}, "times: "),
        ({"name": "a", "tmies": "2"}, "did you mean 'times'?"),
    ],
)
async def test_arguments_that_do_not_fit_are_named(arguments, text):
    error = (await rendered(greet, **arguments))["error"]
    assert error["code"] == -32602
    assert text in error["message"]


async def test_a_conversation_keeps_its_roles():
    async def talk(ctx: Context[None]) -> list[PromptMessage | str | ImageContent]:
        """Talks."""
        answer = PromptMessage(role="assistant", content=TextContent(text="yes"))
        return ["well?", answer, ImageContent.of(b"x", "image/png")]

    messages = (await rendered(talk))["result"]["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]


async def test_a_whole_result_passes_as_it_is():
    async def whole() -> GetPromptResult:
        """Is whole."""
        return GetPromptResult(description="Else.", messages=[])

    assert (await rendered(whole))["result"] == {"description": "Else.", "messages": []}
