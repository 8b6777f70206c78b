"""Completion of arguments and variables."""

import pytest

from shared import Context
from shared.errors import DeclarationError
from tests.shared.server.peer import server, talking

PROMPT = {"type": "ref/prompt", "name": "greet"}
TEMPLATE = {"type": "ref/resource", "uri": "a:{name}"}


def app_with_names(count=3, kind="prompt", name="greet", argument="name"):
    app = server()

    @app.prompt()
    async def greet(name: str) -> str:
        """Greets."""
        return name

    @app.resource("a:{name}")
    async def page(name: str) -> str:
        return name

    @app.completes(kind, name, argument)
    async def names(ctx: Context[None], typed: str, settled: dict[str, str]) -> list[str]:
        return [f"{typed}{number}{settled.get('suffix', '')}" for number in range(count)]

    return app


async def completed(app, ref=PROMPT, name="name", value="n", **more):
    async with talking(app) as peer:
        params = {"ref": ref, "argument": {"name": name, "value": value}, **more}
        return await peer.request("completion/complete", params)


async def test_completions_are_those_of_the_function():
    answer = await completed(app_with_names())
    assert answer["result"]["completion"] == {"values": ["n0", "n1", "n2"], "total": 3, "hasMore": False}
    answer = await completed(app_with_names(kind="resource", name="a:{name}"), TEMPLATE)
    assert answer["result"]["completion"]["total"] == 3  # so are variables of templates
    answer = await completed(app_with_names(), name="other")
    assert answer["result"]["completion"]["values"] == []  # which nobody completes


async def test_up_to_a_hundred_values_are_returned():
    completion = (await completed(app_with_names(100)))["result"]["completion"]
    assert (len(completion["values"]), completion["total"], completion["hasMore"]) == (100, 100, False)


async def test_already_completed_arguments_reach_the_function():
    answer = await completed(app_with_names(1), context={"arguments": {"suffix": "!", "omitted": None}})
    assert answer["result"]["completion"]["values"] == ["n0!"]


def test_only_prompts_and_resources_can_be_completed():
    with pytest.raises(DeclarationError, match="'tool'"):
        app_with_names(kind="tool")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"name": "great"}, "@completes: there is no prompt 'great'; available: greet"),
        ({"argument": "nome"}, "@completes: prompt 'greet' has no argument 'nome'; available: name"),
        ({"kind": "resource", "name": "a:{id}"}, r"there is no resource 'a:{id}'; available: a:{name}"),
    ],
)
async def test_completing_an_unknown_argument_is_refused_at_declaration(options, reason):
    with pytest.raises(DeclarationError) as raised:
        async with app_with_names(**options).open():
            pass
    assert reason in str(raised.value)
    assert "test_completion.py:" in str(raised.value)
