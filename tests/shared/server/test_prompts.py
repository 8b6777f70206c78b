"""Prompts: how they are declared, listed and rendered."""

from typing import Annotated

import pytest
from pydantic import Field

from shared import Context, ImageContent, PromptMessage, TextContent
from shared.errors import DeclarationError, InvalidParams
from shared.protocol.types.prompts import GetPromptResult, Prompt
from tests.shared.server.peer import ERAS, server, talking


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
    (prompt,) = app_with(greet, title="Greeting").prompts.entries()
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


def test_a_duplicate_prompt_is_refused():
    app = app_with(greet)
    with pytest.raises(DeclarationError, match="'greet'"):
        app.prompt()(greet)


def test_a_prompt_can_be_removed():
    app = app_with(greet)
    assert (app.prompts.remove("greet"), app.prompts.remove("greet")) == (True, False)


def test_an_unknown_prompt_is_an_error():
    with pytest.raises(InvalidParams, match="unknown prompt: none"):
        server().prompts.find("none")


async def test_an_argument_that_is_null_is_omitted():
    answer = await rendered(greet, name="Ada", times=None)
    assert answer["result"]["messages"][0]["content"]["text"] == "hello Ada"


async def test_a_conversation_keeps_its_roles():
    async def talk(ctx: Context[None]) -> list[PromptMessage | str | ImageContent]:
        """Talks."""
        answer = PromptMessage(role="assistant", content=TextContent(text="yes"))
        return ["well?", answer, ImageContent.of(b"x", "image/png")]

    messages = (await rendered(talk))["result"]["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]


async def test_a_complete_result_is_sent_unchanged():
    async def whole() -> GetPromptResult:
        """Is whole."""
        return GetPromptResult(description="Else.", messages=[])

    assert (await rendered(whole))["result"] == {"description": "Else.", "messages": []}


# Prompts that come from elsewhere


class Names:
    """A source of prompts that return their own name; records its requests."""

    def __init__(self, names=""):
        self.names = names.split()
        self.asked = []

    async def page(self, context, after, most):
        self.asked.append((after, most))
        return [Prompt(name=name, title=name.upper()) for name in sorted(self.names) if name > after][:most]

    async def get(self, context, name, arguments):
        if name not in self.names:
            return None
        if "bad" in arguments:
            raise InvalidParams("bad is no argument")
        message = PromptMessage(role="assistant", content=TextContent(text=f"{name}{arguments}"))
        return GetPromptResult(messages=[message])

    async def complete(self, context, name, argument, settled):
        found = [f"{argument.name} {argument.value}{number}{settled.get('end', '')}" for number in range(101)]
        return (found, 1_000) if name in self.names else None


def app_from(source, *functions, page_size=2):
    app = server()
    app.page_size = page_size
    for function in functions:
        app.prompt()(function)
    app.prompts_from(source)
    return app


async def pages(peer):
    """The names on each page."""
    found, cursor = [], {}
    while True:
        result = (await peer.request("prompts/list", cursor))["result"]
        found.append(" ".join(prompt["name"] for prompt in result["prompts"]))
        if "nextCursor" not in result:
            return found
        cursor = {"cursor": result["nextCursor"]}


async def a() -> str:
    """Is declared."""
    return "declared"


async def z() -> str:
    """Is also declared."""
    return "z"


@pytest.mark.parametrize("version", ERAS)
async def test_the_prompts_of_a_source_come_after_the_declared_ones(version):
    for functions, names, expected in (
        ((), "", [""]),
        ((), "b c", ["b c"]),
        ((), "b c d", ["b c", "d"]),
        ((z,), "", ["z"]),
        ((z,), "b c d", ["z b", "c d"]),
        ((z, a), "", ["z a"]),
        ((z, a), "b", ["z a", "b"]),
        ((z, a, greet), "b", ["z a", "greet b"]),
        ((a,), "a b c", ["a", "b c"]),
    ):
        async with talking(app_from(Names(names), *functions), version) as peer:
            assert await pages(peer) == expected


async def test_a_source_is_asked_for_one_page_at_a_time():
    source = Names("b c d e f")
    async with talking(app_from(source, a)) as peer:
        await pages(peer)
    assert source.asked == [("", 2), ("b", 3), ("d", 3)]


async def test_a_cursor_remains_valid_while_prompts_change():
    source = Names("b c d e")
    async with talking(app_from(source)) as peer:
        first = (await peer.request("prompts/list"))["result"]
        source.names = ["a", "aa", "d", "f"]
        second = (await peer.request("prompts/list", {"cursor": first["nextCursor"]}))["result"]
    assert [prompt["name"] for prompt in second["prompts"]] == ["d", "f"]
    assert "nextCursor" not in second


@pytest.mark.parametrize("version", ERAS)
async def test_a_source_renders_its_prompts(version):
    async with talking(app_from(Names("b a"), a), version) as peer:
        answer = await peer.request("prompts/get", {"name": "b", "arguments": {"x": "1"}})
        message = {"role": "assistant", "content": {"type": "text", "text": "b{'x': '1'}"}}
        assert answer["result"]["messages"] == [message]
        answer = await peer.request("prompts/get", {"name": "a"})
        assert answer["result"]["messages"][0]["content"]["text"] == "declared"
        error = (await peer.request("prompts/get", {"name": "b", "arguments": {"bad": ""}}))["error"]
        assert (error["code"], error["message"]) == (-32602, "bad is no argument")


@pytest.mark.parametrize("version", ERAS)
async def test_a_source_completes_arguments(version):
    params = {
        "ref": {"type": "ref/prompt", "name": "b"},
        "argument": {"name": "x", "value": "v"},
        "context": {"arguments": {"end": "!"}},
    }
    async with talking(app_from(Names("b")), version) as peer:
        completion = (await peer.request("completion/complete", params))["result"]["completion"]
    assert (completion["values"][:2], len(completion["values"])) == (["x v0!", "x v1!"], 100)
    assert (completion["total"], completion["hasMore"]) == (1_000, True)


async def test_the_arguments_of_declared_prompts_are_completed_beside_a_source():
    app = app_from(Names("b greet"), greet)

    @app.completes("prompt", "greet", "name")
    async def names(ctx: Context[None], typed: str, settled: dict[str, str]) -> list[str]:
        return ["Ada"]

    params = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": ""}}
    async with talking(app) as peer:
        assert (await peer.request("completion/complete", params))["result"]["completion"]["values"] == ["Ada"]


async def test_a_source_declares_prompts_and_completions():
    async with app_from(Names()).open() as running:
        assert running.identity.capabilities == {"prompts": {"listChanged": True}, "completions": {}}


def test_a_second_source_of_prompts_is_refused():
    with pytest.raises(DeclarationError, match="one source"):
        app_from(Names()).prompts_from(Names())
