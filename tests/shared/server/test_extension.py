"""Methods, tools and wrappers of extensions, and their order."""

from typing import Any

import pytest
from pydantic import BaseModel

from shared.errors import DeclarationError
from shared.protocol.identity import Audience
from shared.protocol.methods import Method
from shared.protocol.types.base import Params
from shared.protocol.versions import V2026_07_28
from shared.server.extension import Capability, Extension
from shared.server.running import Opening
from tests.shared.server.peer import ERAS, NEWEST_HANDSHAKE, STATELESS, server, talking

STARS = ("extensions", "org.example/stars")


class Extended(BaseModel):
    """Settings of an extended run."""

    extended: bool = False


async def count_stars(_running: Any, _context: Any, _params: Any) -> dict[str, Any]:
    return {"stars": 3}


def stars(value: dict[str, Any] | None) -> Extension[Any]:
    """A method of 2026-07-28 whose capability is declared with `value`."""
    row = Method("stars/count", Params, first=V2026_07_28, capability=STARS)
    declares = [Capability(STARS, lambda _running: value, Audience(V2026_07_28))]
    return Extension("stars", methods=[row], handlers={row.name: count_stars}, declares=declares)


def noting(name: str, seen: list[str]) -> Extension[Any]:
    """Records each called tool."""

    def around(method: Method, handler: Any) -> Any:
        async def handle(running: Any, context: Any, params: Any) -> dict[str, Any]:
            seen.append(name)
            return await handler(running, context, params)

        return handle if method.name == "tools/call" else handler

    return Extension(name, around=around)


def with_tool(**options: Any) -> Any:
    app = server(**options)

    @app.tool()
    async def go() -> str:
        """Goes."""
        return "gone"

    return app


async def test_methods_are_served_in_the_versions_that_they_name() -> None:
    async with server(extensions=[stars({})]).open() as running:
        assert running.handlers["stars/count"] is count_stars  # who only adds methods is asked about none
        async with talking(running, STATELESS) as new, talking(running, NEWEST_HANDSHAKE) as old:
            assert (await new.request("stars/count"))["result"]["stars"] == 3
            assert (await old.request("stars/count"))["error"]["code"] == -32601


async def test_a_capability_without_a_value_is_not_declared() -> None:
    async with server(extensions=[stars(None)]).open() as running:
        assert "extensions" not in running.identity.capabilities


async def test_the_last_extension_is_outermost() -> None:
    seen: list[str] = []
    async with talking(with_tool(extensions=[noting("first", seen), noting("last", seen)])) as peer:
        await peer.text("go")
    assert seen == ["last", "first"]


@pytest.mark.parametrize("version", ERAS)
async def test_tools_of_an_extension_follow_those_of_the_server(version: str) -> None:
    extension = Extension[Any]("more")

    @extension.tool()
    async def another() -> str:
        """Do something else."""
        return ""

    async with talking(with_tool(extensions=[extension]), version) as peer:
        tools = (await peer.request("tools/list"))["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["go", "another"]


async def test_a_lifespan_extends_its_own_run_only() -> None:
    seen: list[str] = []
    app = with_tool(settings=Extended)

    @app.lifespan
    async def opened(opening: Any) -> Any:
        if opening.settings.extended:
            opening.extend(noting("it", seen))
        yield None

    async with talking(app) as peer:
        await peer.text("go")
    assert seen == []
    async with app.open(Extended(extended=True)) as running, talking(running) as peer:
        await peer.text("go")
    assert seen == ["it"]


async def test_two_extensions_with_one_name_are_refused() -> None:
    with pytest.raises(DeclarationError, match="two extensions have the same name"):
        server(extensions=[stars({}), stars(None)])
    async with server(extensions=[stars({})]).open() as running:
        with pytest.raises(DeclarationError, match="already an extension 'stars'"):
            Opening(running).extend(Extension("stars"))


def test_a_handler_without_its_method_is_refused() -> None:
    with pytest.raises(DeclarationError, match="'stars' handles 'stars/count'"):
        Extension("stars", handlers={"stars/count": count_stars})
