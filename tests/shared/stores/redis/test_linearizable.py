"""Sessions and tasks of several replicas are as if each operation happened at one moment, whatever breaks."""

import asyncio

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.redis_server import RedisServer
from tests.shared.stores.redis.histories import IDS, Plan, SessionsAtWork, TasksAtWork, run
from tests.shared.stores.redis.linearizing import UNKNOWN, History, Operation, is_linearizable
from tests.shared.stores.redis.models import Sessions, Tasks, after_session, after_task

ID = st.sampled_from([IDS[0], *IDS])
REQUESTS = st.sampled_from([(1,), (1,), (2,), (1, 2)])
URI = st.sampled_from(["a", "b"])
TURNS = st.integers(0, 12)


Steps = st.SearchStrategy[tuple[int, str, tuple[object, ...]]]


def steps(
    **operations: st.SearchStrategy[tuple[object, ...]],
) -> Steps:
    """One of these, after some turns."""
    kinds = [st.tuples(TURNS, st.just(name.replace("_", " ")), words) for name, words in operations.items()]
    return st.one_of(kinds)


CLAIMING = steps(
    enter=st.tuples(ID, REQUESTS),
    cancelled_enter=st.tuples(ID, REQUESTS),
    leave=st.tuples(ID, REQUESTS),
    owner=st.tuples(ID, st.sampled_from([1, 2])),
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
OF_TASKS = steps(
    get=st.tuples(ID),
    replace=st.tuples(ID, st.sampled_from("xyz"), st.booleans()),
    listed=st.tuples(ID),
    forget=st.tuples(ID),
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


def few(examples: int) -> settings:
    """The same so many examples each time."""
    return settings(max_examples=examples, derandomize=True, phases=PHASES)


def many(examples: int) -> settings:
    """So many others each time."""
    return settings(max_examples=examples, phases=PHASES)


def check_sessions(history: History) -> None:
    for key, seen in history.seen.items():
        assert is_linearizable(seen, Sessions(), after_session), history.text(key)


def check_tasks(history: History) -> None:
    for key, seen in history.seen.items():
        assert is_linearizable(seen, Tasks(), after_task), history.text(key)


@pytest.mark.slow
@few(24)
@given(plan=st.one_of(plans(CLAIMING), plans(CHANGING), plans(ENDING)))
def test_sessions_are_linearizable(redis_server: RedisServer, plan: Plan) -> None:
    check_sessions(asyncio.run(run(SessionsAtWork, redis_server, plan)))


@pytest.mark.slow
@few(12)
@given(plan=plans(OF_TASKS))
def test_tasks_are_linearizable(redis_server: RedisServer, plan: Plan) -> None:
    check_tasks(asyncio.run(run(TasksAtWork, redis_server, plan)))


@pytest.mark.slow
@pytest.mark.parametrize("operations", [CLAIMING, CHANGING, ENDING], ids=["claiming", "changing", "ending"])
@many(60)
@given(data=st.data())
def test_sessions_are_linearizable_at_length(
    redis_server: RedisServer, operations: Steps, data: st.DataObject
) -> None:
    check_sessions(asyncio.run(run(SessionsAtWork, redis_server, data.draw(plans(operations)))))


@pytest.mark.slow
@many(60)
@given(plan=plans(OF_TASKS))
def test_tasks_are_linearizable_at_length(redis_server: RedisServer, plan: Plan) -> None:
    check_tasks(asyncio.run(run(TasksAtWork, redis_server, plan)))


def seen(*rows: tuple[str, int, tuple[object, ...], object, float, float]) -> list[Operation]:
    return [
        Operation(name, number, words, called, result, answered)
        for name, number, words, result, called, answered in rows
    ]


class TestChecker:
    CREATE = ("create", 1, (), None, 0.0, 1.0)

    def test_an_id_that_two_have_claimed_is_seen(self) -> None:
        claims = [("enter", number, ((1,),), (0, True), 2.0, 5.0) for number in (1, 2)]
        assert not is_linearizable(seen(self.CREATE, *claims), Sessions(), after_session)
        died = ("die", 1, (), None, 3.0, 4.0)
        assert is_linearizable(seen(self.CREATE, *claims, died), Sessions(), after_session)

    def test_what_nobody_heard_of_may_have_happened_or_not(self) -> None:
        unknown = Operation("enter", 2, ((1,),), 2.0)
        for is_free in (True, False):
            entered = ("enter", 1, ((1,),), (0, is_free), 8.0, 9.0)
            history = [*seen(self.CREATE, entered), unknown]
            assert is_linearizable(history, Sessions(), after_session)
        assert unknown.result is UNKNOWN

    def test_what_a_dead_replica_did_after_its_death_is_seen(self) -> None:
        rows = (self.CREATE, ("die", 2, (), None, 2.0, 3.0), ("enter", 2, ((1,),), (0, True), 4.0, 5.0))
        assert not is_linearizable(seen(*rows), Sessions(), after_session)

    def test_a_claim_that_was_not_taken_back_is_seen(self) -> None:
        (cancelled,) = seen(("cancelled enter", 1, ((1,),), None, 2.0, 5.0))
        back = Operation("take back", 1, (cancelled,), 2.0, None, 5.0)
        for owner in (None, 1):
            looked = seen(("owner", 2, (1,), owner, 6.0, 7.0))
            history = [*seen(self.CREATE), cancelled, back, *looked]
            assert is_linearizable(history, Sessions(), after_session) is (owner is None)

    def test_a_read_of_what_was_replaced_before_is_seen(self) -> None:
        replaced = ("replace", 2, (0, "x", False), True, 2.0, 3.0)
        for result in ((0, "", False), (1, "x", False)):
            history = seen((*self.CREATE[:3], True, 0.0, 1.0), replaced, ("get", 1, (), result, 4.0, 5.0))
            assert is_linearizable(history, Tasks(), after_task) is (result[0] == 1)
