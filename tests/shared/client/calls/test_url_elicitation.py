"""URL elicitation: visits of pages, and requests that wait for them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from shared.client.calls.url_elicitation import MAX_VISITS, Visits, required_visits
from shared.client.client import Client
from shared.errors import PeerError
from shared.protocol.types.client import ElicitResult
from shared.protocol.types.elicitation import ElicitUrl
from shared.protocol.wire.jsonrpc import Failure, Message, Notification, Request
from tests.quiet import quiet
from tests.shared.client.connection.test_link import good, playing

PAGE = {"mode": "url", "message": "Sign in", "url": "https://a.example", "elicitationId": "1"}


def refusal(*pages: Any, code: int = -32042) -> PeerError:
    return PeerError("sign in first", code=code, data={"elicitations": list(pages)})


# Visits


async def test_a_wait_lasts_until_all_its_visits_end() -> None:
    visits = Visits()
    visits.begin("1")
    visits.begin("2")
    wait = asyncio.create_task(visits.wait(["1", "2", "unknown"], None))
    for id_ in ("1", "2"):
        await quiet()
        assert not wait.done()
        assert visits.end(id_)
    with anyio.fail_after(30):
        await wait
    assert not visits.end("1")


async def test_a_wait_for_a_visit_that_never_ends_times_out() -> None:
    visits = Visits()
    visits.begin("1")
    with anyio.fail_after(30):
        await visits.wait(["1"], 0.01)


def test_the_oldest_visit_is_forgotten_at_the_limit() -> None:
    visits = Visits()
    for number in range(MAX_VISITS + 1):
        visits.begin(str(number))
    assert not visits.end("0")
    assert visits.end("1")


# Refusals


def test_a_url_elicitation_error_lists_its_pages() -> None:
    visits = required_visits(refusal(PAGE, {**PAGE, "elicitationId": "2"}))
    assert visits is not None
    assert list(visits.requests) == ["1", "2"]
    assert visits.requests["1"] == ("elicitation/create", PAGE)


def test_a_page_without_mode_is_a_url_elicitation() -> None:
    visits = required_visits(refusal({key: value for key, value in PAGE.items() if key != "mode"}))
    assert visits is not None
    assert visits.requests["1"] == ("elicitation/create", PAGE)


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
def test_other_errors_require_no_visits(error: PeerError) -> None:
    assert required_visits(error) is None


@asynccontextmanager
async def guarded(
    action: Any = "accept", *, refusals: int = 1, tells: bool = True
) -> AsyncIterator[tuple[Client, list[str], list[str]]]:
    """A client of a server whose tool requires a visit first, the methods of its requests, and the visited URLs."""
    visited: list[str] = []

    def play(request: Request) -> Message:
        if opened[0].asked.count("tools/call") <= refusals:
            return Failure(request.id, -32042, "sign in first", {"elicitations": [PAGE]})
        return good(request)

    async def visit(page: ElicitUrl) -> ElicitResult:
        visited.append(page.url)
        if tells:
            params = {"elicitationId": page.elicitation_id}
            opened[0].tell(Notification("notifications/elicitation/complete", params))
        return ElicitResult(action=action)

    async with playing(play, elicit_url=visit) as (client, opened):
        yield client, opened[0].asked, visited


@pytest.mark.parametrize(("tells", "seconds"), [(True, 30), (False, 0.05)])
async def test_a_request_is_repeated_after_the_visit(tells: bool, seconds: float) -> None:
    async with guarded(tells=tells) as (client, asked, visited):
        assert (await client.call_tool("enter", timeout=seconds)).text == "good"
    assert (asked, visited) == (["initialize", "tools/call", "tools/call"], ["https://a.example"])


@pytest.mark.parametrize(("action", "refusals", "calls"), [("decline", 1, 1), ("accept", 9, 2)])
async def test_a_declined_visit_or_a_repeated_refusal_raises_the_error(
    action: str, refusals: int, calls: int
) -> None:
    async with guarded(action, refusals=refusals) as (client, asked, visited):
        with pytest.raises(PeerError, match="sign in first"):
            await client.call_tool("enter")
    assert (asked.count("tools/call"), len(visited)) == (calls, 1)
