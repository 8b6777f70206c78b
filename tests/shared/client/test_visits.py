"""Pages that users are sent to, and requests that wait for it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from shared.client.client import Client
from shared.client.options import ClientOptions
from shared.client.visits import MAX_VISITS, Visits, visits_wanted
from shared.errors import PeerError
from shared.kit.tasks import background
from shared.protocol.session.events import Outgoing
from shared.protocol.types.client import ElicitResult
from shared.protocol.types.elicitation import ElicitUrl
from shared.protocol.wire.jsonrpc import Failure, Notification, Request, Response
from shared.transports.memory import memory_pair
from tests.shared.client.small import End

PAGE = {"mode": "url", "message": "Sign in", "url": "https://a.example", "elicitationId": "1"}


def refusal(*pages: Any, code: int = -32042) -> PeerError:
    return PeerError("sign in first", code=code, data={"elicitations": list(pages)})


# Visits


async def test_a_visit_is_waited_for() -> None:
    visits = Visits()
    visits.begin("1")
    visits.begin("2")
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(visits.wait, ["1", "2", "unknown"], None)
            assert visits.end("2")
            assert visits.end("1")
    assert not visits.end("1")


async def test_a_visit_whose_end_is_never_told_is_not_waited_for() -> None:
    visits = Visits()
    visits.begin("1")
    with anyio.fail_after(30):
        await visits.wait(["1"], 0.01)


def test_old_visits_are_forgotten() -> None:
    visits = Visits()
    for number in range(MAX_VISITS + 1):
        visits.begin(str(number))
    assert not visits.end("0")
    assert visits.end("1")


# Refusals


def test_a_refusal_names_its_pages() -> None:
    wanted = visits_wanted(refusal(PAGE, {**PAGE, "elicitationId": "2"}))
    assert wanted is not None
    assert list(wanted.requests) == ["1", "2"]
    assert wanted.requests["1"] == ("elicitation/create", PAGE)


def test_a_page_is_none_of_a_form_though_its_mode_is_left_out() -> None:
    wanted = visits_wanted(refusal({key: value for key, value in PAGE.items() if key != "mode"}))
    assert wanted is not None
    assert wanted.requests["1"] == ("elicitation/create", PAGE)


@pytest.mark.parametrize(
    "error",
    [
        refusal(PAGE, code=-32000),
        refusal(),
        refusal(PAGE, {"url": "https://a.example"}),
        refusal({**PAGE, "elicitationId": None}),
        refusal(*[PAGE] * (MAX_VISITS + 1)),
        PeerError("no", code=-32042),
        PeerError("no", code=-32042, data={"elicitations": 1}),
    ],
)
def test_other_errors_name_none(error: PeerError) -> None:
    assert visits_wanted(error) is None


class Guarded:
    """A server whose one tool wants a page visited first, and the person who visits it."""

    def __init__(self, action: Any = "accept", *, refusals: int = 1, tells: bool = True) -> None:
        self.calls = 0
        self.visited: list[str] = []
        self._action, self._refusals, self._tells = action, refusals, tells
        self._ours, self._theirs = memory_pair()

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Client]:
        options = ClientOptions(mode="handshake", elicit_url=self._visit)
        with anyio.fail_after(30):
            async with background() as tasks:
                tasks.start_soon(self._run)
                try:
                    async with Client(End(self._ours), options) as client:
                        yield client
                finally:
                    self._theirs.close()

    async def _visit(self, page: ElicitUrl) -> ElicitResult:
        self.visited.append(page.url)
        if self._tells:
            told = Notification("notifications/elicitation/complete", {"elicitationId": page.elicitation_id})
            await self._theirs.send([Outgoing(told)])
        return ElicitResult(action=self._action)

    async def _run(self) -> None:
        try:
            while True:
                for message in await self._theirs.receive():
                    if isinstance(message, Request):
                        await self._theirs.send([Outgoing(self._answer(message))])
        except anyio.EndOfStream:
            self._theirs.close()

    def _answer(self, request: Request) -> Response | Failure:
        if request.method == "initialize":
            described = {"capabilities": {"tools": {}}, "serverInfo": {"name": "guarded", "version": "1"}}
            return Response(request.id, {"protocolVersion": "2025-11-25", **described})
        self.calls += 1
        if self.calls <= self._refusals:
            return Failure(request.id, -32042, "sign in first", {"elicitations": [PAGE]})
        return Response(request.id, {"content": [{"type": "text", "text": "welcome"}]})


@pytest.mark.parametrize(("tells", "seconds"), [(True, 30), (False, 0.05)])
async def test_a_request_is_made_again_after_the_visit(tells: bool, seconds: float) -> None:
    guarded = Guarded(tells=tells)
    async with guarded.connected() as client:
        assert (await client.call_tool("enter", timeout=seconds)).text == "welcome"
    assert (guarded.calls, guarded.visited) == (2, ["https://a.example"])


@pytest.mark.parametrize(("action", "refusals", "calls"), [("decline", 1, 1), ("accept", 9, 2)])
async def test_a_refusal_that_stands_is_raised(action: str, refusals: int, calls: int) -> None:
    guarded = Guarded(action, refusals=refusals)
    async with guarded.connected() as client:
        with pytest.raises(PeerError, match="sign in first"):
            await client.call_tool("enter")
    assert (guarded.calls, len(guarded.visited)) == (calls, 1)
