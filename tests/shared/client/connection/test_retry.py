"""`RetryPolicy`: which requests are retried, and after what delay."""

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
    """A policy without jitter: each delay is the longest."""
    made = RetryPolicy(lambda: 1.0)
    made.remember_idempotent_tools(TOOLS)
    return made


def retry_delay(
    error: Exception, method: str = "tools/list", *, tool: str = "", failed: int = 1, left: Any = None
) -> Any:
    return retries().retry_delay(method, {"name": tool}, error, failed, left)


@pytest.mark.parametrize("error", [LOST, PeerError("busy", code=503), PeerError("slow down", code=429)])
def test_only_idempotent_requests_are_retried(error: Exception) -> None:
    assert retry_delay(error, "resources/read") == 0.25
    assert retry_delay(error, "logging/setLevel") is None


@pytest.mark.parametrize(
    "error", [TimeoutError("late"), PeerError("no", code=-32603), PeerError("who?", code=401), FileNotFoundError("x")]
)
def test_errors_that_would_recur_are_not_retried(error: Exception) -> None:
    assert retry_delay(error) is None


def test_calls_of_read_only_or_idempotent_tools_are_retried() -> None:
    named = ["look", "set", "add", "odd", "bare", "unlisted"]
    assert [tool for tool in named if retry_delay(LOST, "tools/call", tool=tool)] == ["look", "set"]


def test_the_newest_list_decides_whether_a_tool_is_retried() -> None:
    changed = retries()
    changed.remember_idempotent_tools({"tools": [{"name": "look"}]})
    assert changed.retry_delay("tools/call", {"name": "look"}, LOST, 1, None) is None


@pytest.mark.parametrize("listed", [{}, {"tools": None}, {"tools": [None, {"name": 3}, {"annotations": {}}]}])
def test_invalid_lists_of_tools_are_ignored(listed: dict[str, Any]) -> None:
    RetryPolicy().remember_idempotent_tools(listed)


def test_every_unreached_request_is_retried() -> None:
    assert retry_delay(Unreached("refused"), "tools/call", tool="add") == 0.25


def test_the_first_retry_in_a_new_session_has_no_delay() -> None:
    assert retry_delay(SessionLost("over"), "tools/call", tool="add") == 0
    assert retry_delay(SessionLost("over"), "tools/call", tool="add", failed=2) == 0.5


def test_retries_end_after_the_maximum_of_attempts() -> None:
    assert [retry_delay(LOST, failed=failed) for failed in range(1, MAX_ATTEMPTS + 1)] == [0.25, 0.5, 1.0, None]


def test_retry_after_sets_the_delay() -> None:
    busy = PeerError("busy", code=503, data={"retryAfter": 7})
    assert retry_delay(busy) == 7
    assert retry_delay(busy, left=7.5) == 7
    assert retry_delay(busy, left=6.5) is None


@pytest.mark.parametrize("seconds", [3_600, 10**400, float("inf")])
@pytest.mark.parametrize("left", [None, 60.0])
def test_a_retry_after_beyond_the_remaining_time_is_not_retried(seconds: float, left: float | None) -> None:
    assert retry_delay(PeerError("busy", code=503, data={"retryAfter": seconds}), left=left) is None


@pytest.mark.parametrize("data", [None, [], {"retryAfter": "7"}, {"retryAfter": -1}, {"retryAfter": None}])
def test_an_invalid_retry_after_is_ignored(data: Any) -> None:
    assert retry_delay(PeerError("busy", code=503, data=data)) == 0.25


def test_the_backoff_grows_to_a_maximum_with_jitter() -> None:
    assert [backoff(failed, lambda: 1.0) for failed in (1, 2, 3, 6, 7, 10_000)] == [0.25, 0.5, 1, 8, 10, 10]
    assert backoff(7, lambda: 0.5) == MAX_BACKOFF_SECONDS / 2
    assert backoff(1, lambda: 0.0) == 0


def test_the_oldest_tools_are_forgotten() -> None:
    hints = {"readOnlyHint": True}
    many = retries()
    many.remember_idempotent_tools(
        {"tools": [{"name": str(number), "annotations": hints} for number in range(MAX_TOOLS)]}
    )
    assert many.retry_delay("tools/call", {"name": "look"}, LOST, 1, None) is None
    assert many.retry_delay("tools/call", {"name": "0"}, LOST, 1, None) is not None
