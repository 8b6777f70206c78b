"""Parsing of the `Retry-After` header."""

from shared.protocol.http.retry_after import read_retry_after, retry_data

NOON = 1_767_268_800.0  # 2026-01-01, 12:00


def test_retry_after_is_seconds_or_a_date() -> None:
    expected: dict[str | None, float | None] = {
        "0": 0,
        " 120 ": 120,
        "999999999999999": 999_999_999_999_999,
        "Thu, 01 Jan 2026 12:00:30 GMT": 30,
        "Thursday, 01-Jan-26 12:00:30 GMT": 30,
        "Thu Jan  1 12:00:30 2026": 30,
        "Thu, 01 Jan 2026 11:00:00 GMT": 0,
    }
    invalid = (None, "", "soon", "-1", "1.5", "1e3", "Thu, 99 Jan 2026 12:00:30 GMT", "9" * 16, "\u0663")
    expected.update(dict.fromkeys(invalid))
    assert {value: read_retry_after(value, NOON) for value in expected} == expected


def test_retry_after_counts_only_with_status_429_or_503() -> None:
    assert [retry_data(status, "3", NOON) for status in (429, 503, 500, 200)] == [{"retryAfter": 3}] * 2 + [None] * 2
    assert [retry_data(status, None, NOON) for status in (429, 503, 500, 200)] == [None] * 4
