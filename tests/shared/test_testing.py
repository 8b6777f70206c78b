"""A client of a server in the same process, as authors use it in their tests."""

from collections.abc import AsyncIterator
from typing import Any, cast

import anyio
import pytest
from pydantic import BaseModel

from shared import Context, Implementation, Opening, Server
from shared.client import ClientOptions, ElicitForm, ElicitResult, connect
from shared.protocol.identity import Principal
from shared.testing import connect_memory


class Sides(BaseModel):
    sides: int = 6


def dice() -> Server[int]:
    app = Server[int](Implementation(name="dice", version="1"), settings=Sides)

    @app.lifespan
    async def open_dice(opening: Opening) -> AsyncIterator[int]:
        yield opening.settings.sides

    @app.tool
    async def count_sides(ctx: Context[int]) -> int:
        """Count the sides of a die."""
        return ctx.state

    @app.tool
    async def reroll(ctx: Context[int]) -> str:
        """Ask whether to roll again."""
        return (await ctx.ask("again", "Roll again?", Sides)).action

    @app.tool
    async def owner(ctx: Context[int]) -> str:
        """Name the caller."""
        return ctx.owner

    return app


@pytest.mark.parametrize("mode", ["auto", "handshake"])
async def test_a_server_in_this_process_is_used_in_both_eras(mode: str) -> None:
    async def answer(form: ElicitForm) -> ElicitResult:
        return ElicitResult(action="decline")

    options = ClientOptions(mode=mode, elicit=answer)
    with anyio.fail_after(30):
        async with connect_memory(dice(), options, settings=Sides(sides=20)) as client:
            assert client.stateless is (mode == "auto")
            assert (await client.call_tool("count_sides")).text == "20"
            assert (await client.call_tool("reroll")).text == "decline"


async def test_a_run_of_a_server_is_used_as_its_principal() -> None:
    with anyio.fail_after(30):
        async with (
            dice().open() as running,
            connect_memory(running, principal=Principal("ann")) as ann,
            connect_memory(running, principal=Principal("bob")) as bob,
        ):
            owners = {(await client.call_tool("owner")).text for client in (ann, bob)}
    assert len(owners) == 2


async def test_an_error_of_the_test_is_raised_unchanged() -> None:
    with anyio.fail_after(30), pytest.raises(ZeroDivisionError):
        async with connect_memory(dice()):
            raise ZeroDivisionError


async def test_connect_says_how_a_server_in_this_process_is_used() -> None:
    with pytest.raises(TypeError, match=r"not a Server; for .* testing\.connect_memory"):
        connect(cast("Any", dice()))
