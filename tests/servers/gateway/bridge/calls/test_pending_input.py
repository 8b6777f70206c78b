"""`pending_input.py`: a call in a session of the server continues over the rounds of a stateless client."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import pytest

from servers.gateway.bridge.calls.pending_input import PendingCalls
from servers.gateway.bridge.calls.pool import SessionPool
from shared import Run
from shared.protocol.identity import Principal
from shared.server.dispatch.connection import serve
from shared.transports.memory import memory_pair
from tests.servers.gateway.bridge.asking import (
    EVERYTHING,
    FORMS,
    Asking,
    asked,
    begun,
    ignore,
    named,
    placed,
    round_of,
    text,
)
from tests.servers.gateway.bridge.upstreams import NEW, Behind, opened
from tests.shared.server.peer import Json, Peer, talking
from tests.wire import STATELESS

ROOTS: Json = {"roots": [{"uri": "file:///work"}]}
THOUGHT: Json = {"role": "assistant", "content": {"type": "text", "text": "thought"}, "model": "m"}


@asynccontextmanager
async def _parking(
    pending_calls: PendingCalls | None = None, capabilities: Json = FORMS
) -> AsyncIterator[tuple[Asking, Peer, PendingCalls]]:
    """A server, a stateless client of it, and the parking of its calls."""
    asking, pending_calls = Asking(), PendingCalls(gather_seconds=0) if pending_calls is None else pending_calls
    async with (
        asking.app.open() as asking.running,
        placed(lambda crew: SessionPool(asking.upstream(), crew, ignore, pending_calls=pending_calls)) as running,
        talking(running, STATELESS, capabilities) as peer,
    ):
        yield asking, peer, pending_calls


async def test_a_question_ends_the_round_and_its_answer_continues_the_call() -> None:
    async with _parking() as (asking, peer, pending_calls):
        first = await round_of(peer, "greet")
        assert first["result"]["inputRequests"]["q1"]["params"]["message"] == "Your first name?"
        second = await round_of(peer, "greet", first, q1=named("Ada"))
        assert asked(second) == {"q2": "elicitation/create"}
        # A state that was used is gone.
        error = (await round_of(peer, "greet", first, q1=named("Eve")))["error"]
        gone = "the call that this request continues is gone; start over without requestState"
        assert (error["code"], error["message"]) == (-32602, gone)
        assert text(await round_of(peer, "greet", second, q2=named("Lovelace"))) == "Ada Lovelace"
        # Nothing else shows that no time runs any more.
        assert (asking.opened, len(pending_calls), list(pending_calls._expiry)) == (1, 0, [])


@asynccontextmanager
async def _called(running: Run[Any], client: str) -> AsyncIterator[Peer]:
    """A stateless peer of this name, without a principal."""
    ours, theirs = memory_pair()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(serve, running, theirs, client=client))
        try:
            yield Peer(ours, STATELESS, FORMS)
        finally:
            ours.close()
    theirs.close()


async def test_a_parked_call_continues_only_for_the_same_address() -> None:
    asking, pending_calls = Asking(), PendingCalls(gather_seconds=0)
    async with (
        asking.app.open() as asking.running,
        placed(lambda crew: SessionPool(asking.upstream(), crew, ignore, pending_calls=pending_calls)) as running,
        _called(running, "@192.0.2.1") as ada,
        _called(running, "@192.0.2.2") as eve,
    ):
        first = await round_of(ada, "greet")
        assert (await round_of(eve, "greet", first, q1=named("Eve")))["error"]["code"] == -32602
        assert asked(await round_of(ada, "greet", first, q1=named("Ada"))) == {"q2": "elicitation/create"}


@pytest.mark.slow
async def test_concurrent_questions_are_sent_together() -> None:
    async with _parking(PendingCalls(gather_seconds=1), EVERYTHING) as (_, peer, _parked):
        first = await round_of(peer, "ask_all")
        assert asked(first) == {"q1": "elicitation/create", "q2": "sampling/createMessage", "q3": "roots/list"}
        last = await round_of(peer, "ask_all", first, q1=named("Ada"), q2=THOUGHT, q3=ROOTS)
        assert text(last) == "Ada thought file:///work"


async def test_an_unanswered_question_is_asked_again() -> None:
    async with _parking() as (_, peer, _parked):
        first = await round_of(peer, "ask_both")
        second = await round_of(peer, "ask_both", first, q2=named("Eve"))
        assert asked(second) == asked(first) == {"q1": "elicitation/create"}
        assert asked(await round_of(peer, "ask_both", second, q1=named("Ada"))) == {"q2": "elicitation/create"}


async def test_a_url_elicitation_is_sent() -> None:
    async with _parking(capabilities=EVERYTHING) as (_, peer, _parked):
        first = await round_of(peer, "visit")
        assert first["result"]["inputRequests"]["q1"]["params"]["url"] == "https://example.org/look"
        assert text(await round_of(peer, "visit", first, q1={"action": "decline"})) == "decline"


async def test_notifications_reach_the_current_round() -> None:
    async with _parking() as (_, peer, _parked):
        first = await round_of(peer, "ask_both")
        await round_of(peer, "ask_both", first, q1=named("Ada"))
        told = [(one["method"], one["params"].get("message")) for one in peer.others]
        assert told == [("notifications/progress", "asking"), ("notifications/progress", "asked")]


async def test_a_parked_call_continues_only_for_the_same_principal() -> None:
    asking, pending_calls = Asking(), PendingCalls()
    async with (
        asking.app.open() as asking.running,
        placed(lambda crew: SessionPool(asking.upstream(), crew, ignore, pending_calls=pending_calls)) as running,
        talking(running, STATELESS, FORMS, principal=Principal("ada")) as ada,
        talking(running, STATELESS, FORMS, principal=Principal("eve")) as eve,
    ):
        first = await round_of(ada, "greet")
        assert (await round_of(eve, "greet", first, q1=named("Eve")))["error"]["code"] == -32602
        assert asked(await round_of(ada, "greet", first, q1=named("Ada"))) == {"q2": "elicitation/create"}


async def test_cancelling_a_round_cancels_the_call() -> None:
    async with _parking() as (asking, peer, _parked):
        id_ = await begun(peer, "wait")
        await asking.started.wait()
        await peer.cancel(id_)
        await asking.cancelled.wait()


async def test_a_parked_call_is_cancelled_when_its_client_does_not_return() -> None:
    async with _parking(PendingCalls(seconds=0.01, gather_seconds=0)) as (asking, peer, pending_calls):
        first = await round_of(peer, "ask_then_wait")
        await asking.cancelled.wait()
        assert len(pending_calls) == 0
        assert "is gone" in (await round_of(peer, "ask_then_wait", first, q1=named("Ada")))["error"]["message"]


async def test_the_number_of_parked_calls_is_limited() -> None:
    async with _parking(PendingCalls(max_calls=1, gather_seconds=0)) as (_, peer, pending_calls):
        first = await round_of(peer, "greet")
        assert (await round_of(peer, "greet"))["error"]["code"] == -32603
        assert len(pending_calls) == 1
        assert asked(await round_of(peer, "greet", first, q1=named("Ada"))) == {"q2": "elicitation/create"}


async def test_a_call_that_asks_endlessly_is_stopped_after_ten_rounds() -> None:
    async with _parking() as (asking, peer, pending_calls):
        answer = await round_of(peer, "ask_for_ever")
        for number in range(1, 10):
            answer = await round_of(peer, "ask_for_ever", answer, **{f"q{number}": named("Ada")})
        assert answer["error"]["message"] == "this request was not completed within 10 rounds"
        await asking.cancelled.wait()
        assert len(pending_calls) == 0


async def test_an_invalid_answer_ends_the_call() -> None:
    async with _parking() as (asking, peer, pending_calls):
        first = await round_of(peer, "ask_then_wait")
        answer = await round_of(peer, "ask_then_wait", first, q1={"action": "perhaps"})
        assert answer["error"]["code"] == -32602
        await asking.cancelled.wait()
        assert len(pending_calls) == 0


async def test_a_question_that_the_client_did_not_declare_is_refused() -> None:
    async with _parking(capabilities={}) as (_, peer, _parked):
        answer = await round_of(peer, "greet")
        assert "elicitation" in answer["error"]["message"]


async def test_a_later_round_that_declares_less_ends_the_call() -> None:
    async with _parking() as (_, peer, pending_calls):
        first = await round_of(peer, "ask_both")
        peer.capabilities = {}
        answer = await round_of(peer, "ask_both", first, q1=named("Ada"))
        assert answer["error"]["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}
        assert len(pending_calls) == 0


async def test_a_call_that_requires_a_visit_is_repeated_after_it() -> None:
    async with _parking(PendingCalls(visit_seconds=1_000), EVERYTHING) as (asking, peer, pending_calls):
        first = await round_of(peer, "enter")
        assert first["result"]["inputRequests"]["v1"]["params"]["url"] == "https://example.org/in"
        id_ = await begun(peer, "enter", first, v1={"action": "accept"})
        assert await peer.text("add", a=1, b=2) == "3"
        asking.visit_over()
        assert text(await peer.answer(id_)) == "entered"
        assert (asking.opened, len(pending_calls)) == (1, 0)


async def test_a_visit_that_is_never_completed_is_requested_again() -> None:
    async with _parking(PendingCalls(visit_seconds=0), EVERYTHING) as (_, peer, _parked):
        first = await round_of(peer, "enter")
        assert asked(await round_of(peer, "enter", first, v1={"action": "accept"})) == {"v1": "elicitation/create"}


async def test_a_declined_visit_ends_the_call() -> None:
    async with _parking(capabilities=EVERYTHING) as (_, peer, _parked):
        first = await round_of(peer, "enter")
        answer = await round_of(peer, "enter", first, v1={"action": "decline"})
        assert (text(answer), answer["result"]["isError"]) == (
            "the user did not open every page that the server requested",
            True,
        )


async def test_a_round_starts_over_when_the_server_no_longer_has_sessions() -> None:
    asking, up = Asking(), anyio.Event()
    behind = Behind(asking.app)
    async with opened(behind) as running, talking(running, STATELESS, FORMS) as peer:
        first = await round_of(peer, "greet")
        behind.mode = NEW
        running.state.connection.watch(lambda: up.set() if running.state.connection.stateless else None)
        await behind.lines[0].aclose()
        await up.wait()
        assert "is gone" in (await round_of(peer, "greet", first, q1=named("Ada")))["error"]["message"]
        assert asked(await round_of(peer, "greet")) == {"first": "elicitation/create"}
