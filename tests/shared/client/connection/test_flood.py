"""What a server tells too often."""

import logging

import pytest

from shared.client.connection.flood import BURST, MAX_PAUSE_SECONDS, PER_SECOND, Flood
from shared.protocol.wire.jsonrpc import Message, Notification, Response

CHANGED = Notification("notifications/tools/list_changed")


def test_a_burst_and_a_steady_rate_are_read_at_once() -> None:
    flood = Flood()
    assert flood.pause([CHANGED] * BURST, 1000.0) == 0
    assert [flood.pause([CHANGED] * PER_SECOND, 1000.0 + second) for second in range(1, 50)] == [0] * 49


def test_who_tells_more_is_waited_with_and_never_for_long(caplog: pytest.LogCaptureFixture) -> None:
    flood, now = Flood(), 1000.0
    pauses = []
    for _ in range(20):
        pauses.append(flood.pause([CHANGED] * BURST, now))
        now += pauses[-1]
    assert pauses == [0, *[MAX_PAUSE_SECONDS] * 19]
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    # What it has waited for is not held against it.
    assert flood.pause([CHANGED], now + MAX_PAUSE_SECONDS) == 0


@pytest.mark.parametrize("message", [Response(1, {}), Notification("notifications/progress")])
def test_answers_cost_nothing_and_all_else_little(message: Message) -> None:
    flood = Flood()
    assert [flood.pause([message] * BURST, 1000.0) for _ in range(50)] == [0] * 50
