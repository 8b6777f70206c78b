"""The `Retry-After` header, which contains a number of seconds or a date (RFC 9110, section 10.2.3)."""

import re
from datetime import UTC
from email.utils import parsedate_to_datetime

RETRYABLE = (429, 502, 503, 504)
"""The status codes of a server, or of a proxy before it, after which another attempt may succeed."""


def retry_data(status: int, value: str | None, now: float) -> dict[str, float] | None:
    """Return the `data` of an error with this HTTP status, `{"retryAfter": seconds}`. None if another attempt would
    be useless, or `value`, the header, contains no time. `now` is the time in seconds since 1970."""
    seconds = read_retry_after(value, now) if status in RETRYABLE else None
    return None if seconds is None else {"retryAfter": seconds}


def read_retry_after(value: str | None, now: float) -> float | None:
    """Return the number of seconds to wait at the time `now`, in seconds since 1970; 0 for a date in the past. None
    if the header is missing or invalid."""
    text = (value or "").strip(" \t")
    if re.fullmatch(r"[0-9]{1,15}", text):
        return float(text)
    try:
        date = parsedate_to_datetime(text)
        return max(0.0, date.replace(tzinfo=date.tzinfo or UTC).timestamp() - now)
    except (ValueError, OverflowError):
        return None
