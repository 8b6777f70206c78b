"""The official client lists our prompts, renders them, and completes their arguments."""

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference, ResourceTemplateReference

from .peers import Case


async def test_lists_prompts(case: Case) -> None:
    async with case.connect("bench") as client:
        listed = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
    greet = listed["greet"]
    assert (greet.title, greet.description) == ("Greeting", "Greet somebody.")
    assert [(one.name, one.required) for one in greet.arguments] == [("name", True), ("tone", False)]


async def test_renders_a_prompt(case: Case) -> None:
    async with case.connect("bench") as client:
        rendered = await client.get_prompt("greet", {"name": "Ada", "tone": "cool"})
    assert [(message.role, message.content.text) for message in rendered.messages] == [
        ("user", "Say hello to Ada, in a cool way."),
        ("assistant", "Hello!"),
    ]


async def test_missing_argument_of_a_prompt_is_an_error(case: Case) -> None:
    async with case.connect("bench") as client:
        with pytest.raises(MCPError, match="name") as caught:
            await client.get_prompt("greet")
    assert caught.value.code == -32602


async def test_completes_an_argument(case: Case) -> None:
    reference = PromptReference(type="ref/prompt", name="greet")
    async with case.connect("bench") as client:
        given = await client.complete(reference, {"name": "tone", "value": "w"})
    assert given.completion.values == ["warm", "witty"]
    assert (given.completion.total, given.completion.has_more) == (2, False)


async def test_completes_by_other_arguments(case: Case) -> None:
    reference = PromptReference(type="ref/prompt", name="greet")
    async with case.connect("bench") as client:
        given = await client.complete(reference, {"name": "tone", "value": "like"}, {"name": "Ada"})
    assert given.completion.values == ["like Ada"]


async def test_completes_a_variable_of_a_template(case: Case) -> None:
    reference = ResourceTemplateReference(type="ref/resource", uri="bench://city/{name}")
    async with case.connect("bench") as client:
        given = await client.complete(reference, {"name": "name", "value": "ber"})
    assert given.completion.values == ["Bergen", "Berlin", "Bern"]
