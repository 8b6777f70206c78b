"""`merge`: the figures of several processes as those of one."""

import json
from collections import Counter
from typing import Any

from shared.protocol.wire.jsonrpc import Failure, Response
from shared.telemetry.merged import from_json, keep_counts, merge, to_json
from shared.telemetry.metrics import BUCKETS, Figures, Labels, Series

ECHO, PING = Labels("tools/call", "echo"), Labels("ping")


def series(*answers: tuple[Response | Failure, float]) -> Series:
    counted = Series(ECHO)
    counted.requests = len(answers)
    for answer, seconds in answers:
        counted.count_answer(answer, seconds)
    return counted


def figures(server: str = "files", **others: Any) -> Figures:
    fields = {"metrics": [], "up": True, "sessions": 1, "streams": 2, "subscriptions": 3, "refused": {}, **others}
    return Figures(server=server, **fields)


def plain(several: list[Figures]) -> Any:
    """The figures as comparable values."""
    return [
        {
            **one._asdict(),
            "metrics": {
                labels: (counted.requests, dict(counted.errors), counted.buckets, counted.seconds)
                for labels, counted in one.metrics
            },
        }
        for one in several
    ]


def test_counts_are_summed() -> None:
    failed, done = (Failure(1, -32603, "internal error"), 0.5), (Response(1, {}), 0.25)
    one = figures(
        metrics=[(ECHO, series(failed, done)), (PING, series(done))],
        refused={401: 1},
        limited={"rate": 2},
        unwritten=1,
    )
    other = figures(metrics=[(ECHO, series(failed))], refused={401: 2, 404: 1}, limited={"rate": 1})
    (both,) = merge([[one], [other]])
    counted = dict(both.metrics)
    assert (counted[ECHO].requests, counted[ECHO].errors, counted[ECHO].seconds) == (3, Counter(server=2), 1.25)
    assert (sum(counted[ECHO].buckets), counted[ECHO].buckets[BUCKETS.index(0.5)]) == (3, 2)
    assert counted[PING].requests == 1
    assert (both.refused, both.limited, both.unwritten) == ({401: 3, 404: 1}, {"rate": 3}, 1)
    assert (both.sessions, both.streams, both.subscriptions) == (2, 4, 6)
    # The inputs are unchanged.
    assert dict(one.metrics)[ECHO].requests == 2


def test_servers_are_merged_by_name() -> None:
    assert [one.server for one in merge([[figures("a"), figures("b")], [figures("b")]])] == ["a", "b"]


def test_a_server_is_up_if_it_is_up_in_all_processes() -> None:
    assert merge([[figures()], [figures()]])[0].up
    assert merge([[figures()], [figures()]])[0].state == "ready"
    starting = merge([[figures()], [figures(up=False, state="starting")]])[0]
    assert (starting.up, starting.state) == (False, "starting")


def test_a_store_is_up_if_all_running_processes_reach_it() -> None:
    here, away = figures(store_up=True, store_lost=1), figures(store_up=False, store_lost=2)
    (both,) = merge([[here], [away]])
    assert (both.store_up, both.store_lost) == (False, 3)
    (both,) = merge([[here], keep_counts([away])])
    assert (both.store_up, both.store_lost) == (True, 3)


def test_without_a_store_its_figures_are_none() -> None:
    (both,) = merge([[figures()], [figures()]])
    assert (both.store_up, both.store_lost) == (None, None)


def test_an_ended_process_adds_counts_but_no_open_sessions() -> None:
    ended = keep_counts([figures(metrics=[(PING, series((Response(1, {}), 1.0)))], up=False)])
    (both,) = merge([[figures()], ended])
    assert (both.up, both.sessions, both.streams, both.subscriptions) == (True, 1, 2, 3)
    assert dict(both.metrics)[PING].requests == 1


def test_figures_are_unchanged_after_json() -> None:
    given = [
        figures(metrics=[(ECHO, series((Failure(1, -32602, "bad"), 0.1)))], refused={401: 1}, limited={"rate": 2}),
        figures("sql", unwritten=3, store_up=False, store_lost=0),
    ]
    assert plain(from_json(json.loads(json.dumps(to_json(given))))) == plain(given)
