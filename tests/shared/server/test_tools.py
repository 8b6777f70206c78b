"""Tools: how they are declared, listed and called."""

import pytest
from pydantic import BaseModel

from shared import Context, Icon, ToolError
from shared.errors import DeclarationError, InvalidParams
from shared.protocol.identity import Principal
from tests.shared.server.peer import ERAS, server, talking


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
    return app.tools.listed(settings or Settings())


def test_a_tool_is_called_as_its_function_and_described_by_its_docstring():
    (tool,) = listed(app_with(greet))
    assert (tool["name"], tool["description"]) == ("greet", "Greets.")


def test_a_declaration_may_say_otherwise():
    (tool,) = listed(app_with(greet, name="hello", description="Says hello.", title="Hello"))
    assert (tool["name"], tool["description"], tool["title"]) == ("hello", "Says hello.", "Hello")


def test_the_function_stays_what_it_was():
    app = server()
    assert app.tool()(greet) is greet


def test_icons_and_meta_are_listed():
    (tool,) = listed(app_with(greet, icons=[Icon(src="data:,")], meta={"org.example/a": 1}))
    assert (tool["icons"], tool["_meta"]) == ([{"src": "data:,"}], {"org.example/a": 1})


@pytest.mark.parametrize(
    ("options", "hints"),
    [
        ({}, {"destructiveHint": True, "openWorldHint": False}),
        ({"read_only": True}, {"readOnlyHint": True, "openWorldHint": False}),
        ({"destructive": False}, {"destructiveHint": False, "openWorldHint": False}),
        ({"idempotent": True}, {"destructiveHint": True, "idempotentHint": True, "openWorldHint": False}),
        ({"open_world": True}, {"destructiveHint": True}),
        ({"read_only": True, "open_world": True}, {"readOnlyHint": True}),
    ],
)
def test_hints_take_the_careful_side_and_repeat_no_default_of_the_protocol(options, hints):
    (tool,) = listed(app_with(greet, **options))
    assert tool["annotations"] == hints


def test_a_tool_needs_a_docstring():
    async def silent() -> str:
        return ""

    with pytest.raises(DeclarationError, match="'silent' needs a docstring"):
        app_with(silent)


def test_a_description_that_hosts_would_cut_is_refused():
    with pytest.raises(DeclarationError, match="'greet'"):
        app_with(greet, description="x" * 2_049)


def test_a_name_can_be_taken_once():
    app = app_with(greet)
    with pytest.raises(DeclarationError, match="'greet' already"):
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


def test_a_tool_that_is_not_on_offer_is_not_listed_and_says_why_when_called():
    app = app_with(greet, unavailable=needs_writing)
    assert listed(app) == []
    with pytest.raises(ToolError, match="writing is off"):
        app.tools.find("greet", Settings())


def test_settings_may_put_it_on_offer():
    app = app_with(greet, unavailable=needs_writing)
    assert len(listed(app, Settings(writing=True))) == 1
    assert app.tools.find("greet", Settings(writing=True)).name == "greet"


@pytest.mark.parametrize("version", ERAS)
async def test_a_call_reaches_the_function_and_its_value_the_client(version):
    async with talking(app_with(greet), version) as peer:
        assert await peer.text("greet", name="Ada") == "hello Ada"


async def test_the_function_gets_its_context_under_any_name():
    async def who(here: Context[None]) -> str:
        """Says who calls."""
        return f"{here.id} {here.peer.principal.key}"

    async with talking(app_with(who), principal=Principal("ada")) as peer:
        assert await peer.text("who") == "c2 ada"


async def test_a_tool_added_while_the_server_runs_can_be_called():
    app = app_with(greet)
    async with app.open() as running, talking(running) as peer:
        running.features.tool(name="later")(greet)
        assert await peer.text("later") == "hello you"


async def test_a_result_over_the_budget_is_an_error_that_the_model_reads():
    async def long() -> str:
        """Says much."""
        return "x" * 1_000_000

    async with talking(app_with(long)) as peer:
        result = (await peer.call("long"))["result"]
        assert result["isError"]
        assert "1,000,0" in result["content"][0]["text"]
