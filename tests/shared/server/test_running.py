"""Descriptions set by an opening server."""

from typing import Any

import anyio
import pytest

from shared import Opening, list_roots
from tests.shared.server.peer import server, talking


@pytest.mark.parametrize(("said", "told"), [("error", []), ("debug", ["one"]), (None, ["one"])])
async def test_the_initial_log_level_may_be_set(said: Any, told: list[str]) -> None:
    app = server()
    async with app.open() as running:
        Opening(running).describe({"logging": {}}, None, log_level=said)
        async with talking(running) as peer:
            await peer.request("ping")
            running.conditions.begin("one", "info", "one")
            running.conditions.begin("two", "error", "two")
            for data in [*told, "two"]:
                assert (await peer.other("notifications/message"))["params"]["data"] == data


async def test_handshake_callbacks_are_called_after_each_handshake() -> None:
    app, seen = server(), list[Any]()
    async with app.open() as running:
        running.hooks.handshake_callbacks.append(seen.append)
        async with talking(running) as peer:
            await peer.request("ping")
            assert [link.session.peer.info["name"] for link in seen] == ["wire"]


async def test_a_question_outside_of_calls_is_cancelled_when_nobody_waits() -> None:
    app, links = server(), list[Any]()
    async with app.open() as running:
        running.hooks.handshake_callbacks.append(links.append)
        async with talking(running, capabilities={"roots": {}}) as peer, anyio.create_task_group() as tasks:
            await peer.request("ping")
            tasks.start_soon(links[0].ask_standalone, list_roots())
            question = await peer.other("roots/list")
            tasks.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                taken_back = await peer.other("notifications/cancelled")
            assert taken_back["params"]["requestId"] == question["id"]
