"""Resources: fixed ones, templates, and listers."""

from typing import Annotated, Literal

import pytest

from shared import Annotations, Context, ResourceNotFound, TextResourceContents
from shared.errors import DeclarationError
from shared.protocol.types.resources import Resource
from tests.shared.server.peer import NEWEST_HANDSHAKE, server, talking


async def note() -> str:
    """A note."""
    return "hello"


async def page(number: int, mode: str = "plain") -> str:
    """A page."""
    return f"{number} {mode}"


def app_with(*resources):
    app = server()
    for uri, function in resources:
        app.resource(uri)(function)
    return app


async def read(app, uri, version=NEWEST_HANDSHAKE):
    async with talking(app, version) as peer:
        return await peer.request("resources/read", {"uri": uri})


async def contents(app, uri):
    return (await read(app, uri))["result"]["contents"]


async def test_fixed_resources_and_templates_are_listed_separately():
    app = app_with(("a:{number}{?mode}", page))
    app.resource("a:note", name="n", title="N", mime_type="text/plain", annotations=Annotations(priority=1))(note)
    async with talking(app) as peer:
        (fixed,) = (await peer.request("resources/list"))["result"]["resources"]
        (template,) = (await peer.request("resources/templates/list"))["result"]["resourceTemplates"]
    said = {"uri": "a:note", "name": "n", "title": "N", "description": "A note.", "mimeType": "text/plain"}
    assert fixed == {**said, "annotations": {"priority": 1}}
    assert template == {"uriTemplate": "a:{number}{?mode}", "name": "page", "description": "A page."}


def test_a_declaration_that_can_not_be_served_is_refused():
    for uri in ("a:note", "a:{other}", "a:{number}", "a:{number}{?mode,more}"):
        with pytest.raises(DeclarationError, match="'page'"):
            app_with((uri, page))
    with pytest.raises(DeclarationError, match=r"must not be adjacent"):
        app_with(("a:{x}{y}", note))
    with pytest.raises(DeclarationError, match="already a resource 'a:note'"):
        app_with(("a:note", note), ("a:note", note))


def test_a_resource_can_be_removed():
    app = app_with(("a:note", note))
    assert (app.resources.remove("a:note"), app.resources.remove("a:note")) == (True, False)


async def test_contents_have_the_requested_uri_or_their_own():
    async def raw() -> bytes:
        return b"\x00\xff"

    async def folder() -> list[TextResourceContents | str]:
        return [TextResourceContents(uri="a:folder/1", text="one"), "two"]

    app = app_with(("a:note", note), ("a:raw", raw), ("a:folder", folder))
    assert await contents(app, "a:note") == [{"uri": "a:note", "text": "hello"}]
    assert await contents(app, "a:raw") == [{"uri": "a:raw", "blob": "AP8="}]
    assert [one["uri"] for one in await contents(app, "a:folder")] == ["a:folder/1", "a:folder"]


async def test_variables_are_converted_and_a_fixed_resource_precedes_a_template():
    app = app_with(("a:{number}{?mode}", page), ("a:7", note))
    assert [one["text"] for one in await contents(app, "a:8?mode=bold")] == ["8 bold"]
    assert [one["text"] for one in await contents(app, "a:7")] == ["hello"]


async def test_a_function_may_raise_resource_not_found():
    async def missing(name: str) -> str:
        raise ResourceNotFound(f"a:{name}", "no such page")

    error = (await read(app_with(("a:{name}", missing)), "a:x"))["error"]
    assert (error["code"], error["message"], error["data"]) == (-32002, "no such page", {"uri": "a:x"})


@pytest.mark.parametrize("returns", [str | None, Annotated[str | None, "text"], Literal["a", None]])
async def test_none_means_resource_not_found(returns):
    async def missing(): ...

    missing.__annotations__["return"] = returns
    assert (await read(app_with(("a:b", missing)), "a:b"))["error"]["message"] == "resource not found"


async def test_an_invalid_return_value_is_an_error_without_detail():
    async def wrong() -> str:
        return 5  # type: ignore[return-value]

    error = (await read(app_with(("a:b", wrong)), "a:b"))["error"]
    assert (error["code"], error["message"]) == (-32603, "internal error")


async def test_a_lister_adds_resources():
    app = app_with(("a:note", note))

    @app.lists_resources
    async def more(ctx: Context[None]) -> list[Resource]:
        return [Resource(uri="a:1", name="one", size=3)]

    async with talking(app) as peer:
        listed = (await peer.request("resources/list"))["result"]["resources"]
    assert [one["uri"] for one in listed] == ["a:note", "a:1"]


async def test_a_listed_resource_with_an_invalid_uri_is_logged_and_omitted(caplog):
    app = server()

    @app.lists_resources
    async def more(ctx: Context[None]) -> list[Resource]:
        return [Resource(uri="note://my note", name="mine"), Resource(uri="note://today", name="today")]

    async with talking(app) as peer:
        await peer.request("resources/list")
        listed = (await peer.request("resources/list"))["result"]["resources"]
    assert caplog.text.count("'note://my note' is not a URI") == 1
    assert "note://today" in [resource["uri"] for resource in listed]
    assert "note://my note" not in [resource["uri"] for resource in listed]
    assert "'note://my note' is not a URI" in caplog.text


async def test_a_declared_none_means_resource_not_found():
    async def missing(name: str) -> str | None:
        return None

    error = (await read(app_with(("a:{name}", missing)), "a:x"))["error"]
    assert (error["code"], error["data"]) == (-32002, {"uri": "a:x"})


async def test_a_lister_alone_declares_resources():
    app = server()

    @app.lists_resources
    async def nothing(ctx: Context[None]) -> list[Resource]:
        return []

    async with talking(app) as peer:
        assert (await peer.request("resources/list"))["result"]["resources"] == []


def three_parts(asked: list[str]):
    """A server whose resources a:note, b1 to b3 and c1 to c3 come from three places, the last two of which say when
    they are asked."""
    app = app_with(("a:note", note))
    for letter in "bc":

        async def lister(ctx: Context[None], letter: str = letter) -> list[Resource]:
            asked.append(letter)
            return [Resource(uri=f"{letter}:{number}", name=f"{letter}{number}") for number in (1, 2, 3)]

        app.lists_resources(lister)
    return app


async def test_each_resource_is_on_one_page_for_every_page_size():
    for size in range(1, 9):
        app, found, cursor = three_parts([]), [], {}
        app.page_size = size
        async with talking(app) as peer:
            while cursor is not None:
                result = (await peer.request("resources/list", cursor))["result"]
                assert 0 < len(result["resources"]) <= size
                found += [one["name"] for one in result["resources"]]
                cursor = {"cursor": result["nextCursor"]} if "nextCursor" in result else None
        assert found == ["note", "b1", "b2", "b3", "c1", "c2", "c3"]


@pytest.mark.parametrize(
    ("removed", "added", "second"),
    [("memo://1", None, ["m3", "m4"]), ("memo://2", None, ["m3", "m4"]), (None, "memo://0", ["m3", "m4"])],
)
async def test_resources_that_change_between_pages_hide_no_other(removed, added, second):
    listed = [Resource(uri=f"memo://{number}", name=f"m{number}") for number in (1, 2, 3, 4)]
    app = server()
    app.page_size = 2

    async def lister(_context):
        return listed

    app.lists_resources(lister)
    async with talking(app) as peer:
        first = (await peer.request("resources/list"))["result"]
        listed[:] = [resource for resource in listed if resource.uri != removed]
        if added is not None:
            listed.insert(0, Resource(uri=added, name="m0"))
        rest = (await peer.request("resources/list", {"cursor": first["nextCursor"]}))["result"]
    assert [one["name"] for one in first["resources"] + rest["resources"]] == ["m1", "m2", *second]
    assert "nextCursor" not in rest


@pytest.mark.parametrize(("size", "expected"), [(3, ["b"]), (4, ["b", "c"])])
async def test_a_lister_is_called_only_when_a_page_reaches_it(size, expected):
    asked: list[str] = []
    app = three_parts(asked)
    app.page_size = size
    async with talking(app) as peer:
        await peer.request("resources/list")
    assert asked == expected
