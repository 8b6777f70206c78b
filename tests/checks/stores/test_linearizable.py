"""Sessions of several replicas are as if each operation happened at one moment, whatever breaks."""

import asyncio

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.checks.stores.histories import IDS, Plan, SessionsAtWork, run
from tests.checks.stores.linearizing import History, Operation, is_linearizable
from tests.checks.stores.models import Sessions, after_session
from tests.redis_server import RedisServer

ID = st.sampled_from([IDS[0], *IDS])
REQUESTS = st.sampled_from([(1,), (1,), (2,), (1, 2)])
URI = st.sampled_from(["a", "b"])
TURNS = st.integers(0, 12)


Steps = st.SearchStrategy[tuple[int, str, tuple[object, ...]]]


def steps(**operations: st.SearchStrategy[tuple[object, ...]]) -> Steps:
    """One of these, after some turns."""
    kinds = [st.tuples(TURNS, st.just(name.replace("_", " ")), words) for name, words in operations.items()]
    return st.one_of(kinds)


CLAIMING = steps(
    enter=st.tuples(ID, REQUESTS),
    cancelled_enter=st.tuples(ID, REQUESTS),
    leave=st.tuples(ID, REQUESTS),
    serving_replica=st.tuples(ID, st.sampled_from([1, 2])),
)
CHANGING = steps(
    enter=st.tuples(ID, st.just(())),
    update=st.tuples(ID),
    watch=st.tuples(ID, URI, st.booleans()),
    adopt=st.tuples(ID),
)
ENDING = steps(
    enter=st.tuples(ID, st.sampled_from([(), (1,)])),
    update=st.tuples(ID),
    lapse=st.tuples(ID, st.booleans()),
    release=st.tuples(ID),
    delete=st.tuples(ID),
    adopt=st.tuples(ID),
)
WRONG = st.sampled_from(["kill", "request", "reply", "late", "deliver", "die", "lose"])


@st.composite
def plans(draw: st.DrawFn, operations: Steps) -> Plan:
    """Two to four at work, and what goes wrong meanwhile."""
    workers = draw(
        st.lists(st.tuples(st.integers(0, 2), st.lists(operations, min_size=1, max_size=4)), min_size=2, max_size=4)
    )
    wrong = draw(st.lists(st.tuples(st.integers(0, 40), WRONG, st.tuples(st.integers(0, 2))), max_size=4))
    return [*workers, (-1, wrong)]


# What fails may not fail again, as it is a matter of time as well: nothing is tried in order to make it smaller.
PHASES = [Phase.explicit, Phase.reuse, Phase.generate]


def many(examples: int) -> settings:
    """So many others each time."""
    return settings(max_examples=examples, phases=PHASES)


def check_sessions(history: History) -> None:
    for key, seen in history.seen.items():
        assert is_linearizable(seen, Sessions(), after_session), history.text(key)


@pytest.mark.parametrize("operations", [CLAIMING, CHANGING, ENDING], ids=["claiming", "changing", "ending"])
@many(60)
@given(data=st.data())
def test_sessions_are_linearizable(redis_server: RedisServer, operations: Steps, data: st.DataObject) -> None:
    check_sessions(asyncio.run(run(SessionsAtWork, redis_server, data.draw(plans(operations)))))


def seen(*rows: tuple[str, int, tuple[object, ...], object, float, float]) -> list[Operation]:
    return [
        Operation(name, number, words, called, result, answered)
        for name, number, words, result, called, answered in rows
    ]


def test_an_id_claimed_twice_is_detected() -> None:
    """Else nothing would be shown by a history that is found linearizable."""
    create = ("create", 1, (), None, 0.0, 1.0)
    claims = [("enter", number, ((1,),), (0, True), 2.0, 5.0) for number in (1, 2)]
    assert not is_linearizable(seen(create, *claims), Sessions(), after_session)
    died = ("die", 1, (), None, 3.0, 4.0)
    assert is_linearizable(seen(create, *claims, died), Sessions(), after_session)
