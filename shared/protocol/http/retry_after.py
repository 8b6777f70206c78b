"""The wait from a `Retry-After` header, which contains seconds or a date (RFC 9110, 10.2.3)."""

import re
from datetime import UTC
from email.utils import parsedate_to_datetime

BUSY = (429, 502, 503, 504)
"""Status codes of a server, or of a proxy in front of it, after which another attempt may succeed."""


def retry_data(status: int, value: str | None, now: float) -> dict[str, float] | None:
    """Return the wait for the `data` of an error with this HTTP status: `{"retryAfter": seconds}`, if the status is
    in `BUSY` and the header contains a wait."""
    seconds = read_retry_after(value, now) if status in BUSY else None
    return None if seconds is None else {"retryAfter": seconds}


def read_retry_after(value: str | None, now: float) -> float | None:
    """Return the seconds to wait, 0 or more, at the time `now`, in seconds since 1970. None if the header is missing
    or invalid."""
    text = (value or "").strip(" \t")
    if re.fullmatch(r"[0-9]{1,15}", text):
        return float(text)
    try:
        date = parsedate_to_datetime(text)
        return max(0.0, date.replace(tzinfo=date.tzinfo or UTC).timestamp() - now)
    except (ValueError, OverflowError):
        return None
