"""What a `Retry-After` header says."""

import pytest

from shared.protocol.http.retry_after import retry_after, wait_of

NOON = 1_767_268_800.0  # 2026-01-01, 12:00


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0),
        (" 120 ", 120),
        ("999999999999999", 999_999_999_999_999),
        ("Thu, 01 Jan 2026 12:00:30 GMT", 30),
        ("Thursday, 01-Jan-26 12:00:30 GMT", 30),
        ("Thu Jan  1 12:00:30 2026", 30),
        ("Thu, 01 Jan 2026 11:00:00 GMT", 0),
    ],
)
def test_seconds_and_dates(value: str, seconds: float) -> None:
    assert retry_after(value, NOON) == seconds


@pytest.mark.parametrize(
    "value", [None, "", "soon", "-1", "1.5", "1e3", "Thu, 99 Jan 2026 12:00:30 GMT", "9" * 16, "\u0663"]
)
def test_what_says_neither(value: str | None) -> None:
    assert retry_after(value, NOON) is None


@pytest.mark.parametrize(
    ("status", "data"), [(429, {"retryAfter": 3}), (503, {"retryAfter": 3}), (500, None), (200, None)]
)
def test_only_who_is_busy_is_waited_for(status: int, data: dict[str, float] | None) -> None:
    assert wait_of(status, "3", NOON) == data
    assert wait_of(status, None, NOON) is None
