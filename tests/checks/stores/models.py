"""What a session may look like after an operation: the contract of its store, as plain functions of a state that
never changes."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from tests.checks.stores.linearizing import UNKNOWN, Operation

__all__ = ["Session", "Sessions", "after_session"]

Numbers = frozenset[int]
NONE: frozenset[Any] = frozenset()


@dataclass(frozen=True)
class Session:
    """A session that is there."""

    roots: int = 0
    """How often something of it has changed."""
    holders: Numbers = NONE
    lapsed: Numbers = NONE
    claims: frozenset[tuple[int, int]] = NONE
    """The id of a request, and the replica that serves it."""
    watched: frozenset[tuple[str, int]] = NONE
    """A resource, and the replica that tells of it; -1 where it no longer does."""


@dataclass(frozen=True)
class Sessions:
    """One id: its session, and the replicas that are dead."""

    session: Session | None = None
    dead: Numbers = NONE
    cancelled: frozenset[tuple[Operation, bool]] = NONE
    """Calls that nobody waits for any more, and whether they have claimed ids, which is taken back later."""


def _after(state: Any, one: Operation, effect: Any) -> Iterator[Any]:
    if one.name == "die":
        yield replace(state, dead=state.dead | {one.number})
        return
    if one.result is UNKNOWN:
        yield state
    if one.number not in state.dead:
        after, result = effect(state, one)
        if one.result is UNKNOWN or one.result == result:
            yield after


def after_session(state: Sessions, one: Operation) -> Iterator[Sessions]:
    """The states of a session after an operation of this kind, with what came of it."""
    if one.name == "cancelled enter":
        yield from _after_cancelled(state, one)
    elif one.name == "take back":
        yield from _after_taken_back(state, one)
    else:
        yield from _after(state, one, _session_effect)


def _session_effect(state: Sessions, one: Operation) -> tuple[Sessions, Any]:
    if one.name == "create":
        return replace(state, session=Session(holders=frozenset({one.number}))), None
    if state.session is None:
        return state, {"lapse": True, "adopt": ()}.get(one.name)
    after, result = _OF_SESSION[one.name](state.session, state.dead, one.number, *one.arguments)
    return replace(state, session=after), result


Effect = tuple[Session | None, Any]


def _enter(session: Session, dead: Numbers, me: int, ids: tuple[int, ...]) -> Effect:
    served = {id_ for id_, number in session.claims if number not in dead}
    is_free = served.isdisjoint(ids)
    claims = session.claims
    if is_free:
        claims = frozenset((id_, n) for id_, n in claims if id_ not in ids) | {(id_, me) for id_ in ids}
    entered = replace(session, holders=session.holders | {me}, lapsed=NONE, claims=claims)
    return entered, (session.roots, is_free)


def _leave(session: Session, _dead: Numbers, me: int, ids: tuple[int, ...]) -> Effect:
    return replace(session, claims=session.claims - {(id_, me) for id_ in ids}), None


def _serving_replica(session: Session, dead: Numbers, _me: int, id_: int) -> Effect:
    numbers = [number for claimed, number in session.claims if claimed == id_ and number not in dead]
    return session, numbers[0] if numbers else None


def _update(session: Session, _dead: Numbers, _me: int) -> Effect:
    return replace(session, roots=session.roots + 1), None


def _watch(session: Session, _dead: Numbers, me: int, uri: str, is_watched: bool) -> Effect:
    others = frozenset((other, number) for other, number in session.watched if other != uri)
    return replace(session, watched=others | {(uri, me)} if is_watched else others), None


def _adopt(session: Session, dead: Numbers, me: int) -> Effect:
    uris = {uri for uri, number in session.watched if number < 0 or number in dead}
    told = frozenset((uri, me if uri in uris else number) for uri, number in session.watched)
    return replace(session, watched=told), tuple(sorted(uris))


def _let_go(session: Session, me: int) -> Session:
    told = frozenset((uri, -1 if number == me else number) for uri, number in session.watched)
    return replace(session, holders=session.holders - {me}, watched=told)


def _lapse(session: Session, dead: Numbers, me: int, busy: bool) -> Effect:
    session = replace(session, lapsed=session.lapsed | {me})
    if session.holders - dead <= session.lapsed:
        return None, True
    return session if busy else _let_go(session, me), False


_OF_SESSION: dict[str, Any] = {
    "enter": _enter,
    "leave": _leave,
    "serving replica": _serving_replica,
    "update": _update,
    "watch": _watch,
    "adopt": _adopt,
    "lapse": _lapse,
    "release": lambda session, _dead, me: (_let_go(session, me), None),
    "delete": lambda _session, _dead, _me: (None, None),
}


def _after_cancelled(state: Sessions, one: Operation) -> Iterator[Sessions]:
    """Whoever called has gone away: it may have happened, and if it has, it is taken back in the end."""
    yield replace(state, cancelled=state.cancelled | {(one, False)})
    if state.session is not None and one.number not in state.dead:
        after, (_, is_free) = _enter(state.session, state.dead, one.number, *one.arguments)
        yield replace(state, session=after, cancelled=state.cancelled | {(one, is_free)})


def _after_taken_back(state: Sessions, one: Operation) -> Iterator[Sessions]:
    (cancelled,) = one.arguments
    if (cancelled, True) in state.cancelled and one.number not in state.dead and state.session is not None:
        after, _ = _leave(state.session, state.dead, one.number, *cancelled.arguments)
        yield replace(state, session=after)
    elif {(cancelled, True), (cancelled, False)} & state.cancelled:
        yield state
