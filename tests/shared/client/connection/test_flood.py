"""`Flood`: pauses for servers that send too many notifications."""

import logging

import pytest

from shared.client.connection.flood import BURST, MAX_PAUSE_SECONDS, PER_SECOND, Flood
from shared.protocol.wire.jsonrpc import Message, Notification, Response

CHANGED = Notification("notifications/tools/list_changed")


def test_a_burst_or_a_steady_rate_causes_no_pause() -> None:
    flood = Flood()
    assert flood.count([CHANGED] * BURST, 1000.0) == 0
    assert [flood.count([CHANGED] * PER_SECOND, 1000.0 + second) for second in range(1, 50)] == [0] * 49


def test_a_flood_causes_pauses_up_to_the_maximum_and_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    flood, now = Flood(), 1000.0
    pauses = []
    for _ in range(20):
        pauses.append(flood.count([CHANGED] * BURST, now))
        now += pauses[-1]
    assert pauses == [0, *[MAX_PAUSE_SECONDS] * 19]
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    # After the pauses, the server has its full burst again.
    assert flood.count([CHANGED], now + MAX_PAUSE_SECONDS) == 0


@pytest.mark.parametrize("message", [Response(1, {}), Notification("notifications/progress")])
def test_answers_and_progress_cause_no_pause(message: Message) -> None:
    flood = Flood()
    assert [flood.count([message] * BURST, 1000.0) for _ in range(50)] == [0] * 50
