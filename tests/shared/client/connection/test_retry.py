"""`RetryPolicy`: what is asked again, and how long after."""

from typing import Any

import pytest

from shared.client.connection.retry import MAX_ATTEMPTS, MAX_BACKOFF_SECONDS, MAX_TOOLS, RetryPolicy, backoff
from shared.client.errors import SessionLost, Unreached
from shared.errors import PeerError

LOST = ConnectionError("lost")
TOOLS = {
    "tools": [
        {"name": "look", "annotations": {"readOnlyHint": True}},
        {"name": "set", "annotations": {"idempotentHint": True}},
        {"name": "add", "annotations": {"readOnlyHint": False}},
        {"name": "odd", "annotations": {"readOnlyHint": "yes"}},
        {"name": "bare"},
    ]
}


def retries() -> RetryPolicy:
    """They wait as long as they may."""
    made = RetryPolicy(lambda: 1.0)
    made.remember_idempotent_tools(TOOLS)
    return made


def retry_delay(
    error: Exception, method: str = "tools/list", *, tool: str = "", failed: int = 1, left: Any = None
) -> Any:
    return retries().retry_delay(method, {"name": tool}, error, failed, left)


@pytest.mark.parametrize("error", [LOST, PeerError("busy", code=503), PeerError("slow down", code=429)])
def test_what_changes_nothing_is_asked_again(error: Exception) -> None:
    assert retry_delay(error, "resources/read") == 0.25
    assert retry_delay(error, "logging/setLevel") is None


@pytest.mark.parametrize(
    "error", [TimeoutError("late"), PeerError("no", code=-32603), PeerError("who?", code=401), FileNotFoundError("x")]
)
def test_what_would_fail_again_is_not(error: Exception) -> None:
    assert retry_delay(error) is None


def test_a_tool_is_called_again_where_it_says_so_of_itself() -> None:
    named = ["look", "set", "add", "odd", "bare", "unlisted"]
    assert [tool for tool in named if retry_delay(LOST, "tools/call", tool=tool)] == ["look", "set"]


def test_the_newest_list_says_what_a_tool_is() -> None:
    changed = retries()
    changed.remember_idempotent_tools({"tools": [{"name": "look"}]})
    assert changed.retry_delay("tools/call", {"name": "look"}, LOST, 1, None) is None


@pytest.mark.parametrize("listed", [{}, {"tools": None}, {"tools": [None, {"name": 3}, {"annotations": {}}]}])
def test_a_list_may_be_anything(listed: dict[str, Any]) -> None:
    RetryPolicy().remember_idempotent_tools(listed)


def test_what_did_not_come_there_is_asked_again_whatever_it_is() -> None:
    assert retry_delay(Unreached("refused"), "tools/call", tool="add") == 0.25


def test_a_new_session_is_not_waited_for() -> None:
    assert retry_delay(SessionLost("over"), "tools/call", tool="add") == 0
    assert retry_delay(SessionLost("over"), "tools/call", tool="add", failed=2) == 0.5


def test_it_is_given_up_in_the_end() -> None:
    assert [retry_delay(LOST, failed=failed) for failed in range(1, MAX_ATTEMPTS + 1)] == [0.25, 0.5, 1.0, None]


def test_the_server_says_how_long_it_wants_to_be_left_alone() -> None:
    busy = PeerError("busy", code=503, data={"retryAfter": 7})
    assert retry_delay(busy) == 7
    assert retry_delay(busy, left=7.5) == 7
    assert retry_delay(busy, left=6.5) is None


@pytest.mark.parametrize("seconds", [3_600, 10**400, float("inf")])
@pytest.mark.parametrize("left", [None, 60.0])
def test_nobody_leaves_a_server_alone_for_ever(seconds: float, left: float | None) -> None:
    assert retry_delay(PeerError("busy", code=503, data={"retryAfter": seconds}), left=left) is None


@pytest.mark.parametrize("data", [None, [], {"retryAfter": "7"}, {"retryAfter": -1}, {"retryAfter": None}])
def test_what_a_server_says_may_be_anything(data: Any) -> None:
    assert retry_delay(PeerError("busy", code=503, data=data)) == 0.25


def test_pauses_grow_to_a_bound_and_differ() -> None:
    assert [backoff(failed, lambda: 1.0) for failed in (1, 2, 3, 6, 7, 10_000)] == [0.25, 0.5, 1, 8, 10, 10]
    assert backoff(7, lambda: 0.5) == MAX_BACKOFF_SECONDS / 2
    assert backoff(1, lambda: 0.0) == 0


def test_old_tools_are_forgotten() -> None:
    hints = {"readOnlyHint": True}
    many = retries()
    many.remember_idempotent_tools(
        {"tools": [{"name": str(number), "annotations": hints} for number in range(MAX_TOOLS)]}
    )
    assert many.retry_delay("tools/call", {"name": "look"}, LOST, 1, None) is None
    assert many.retry_delay("tools/call", {"name": "0"}, LOST, 1, None) is not None
