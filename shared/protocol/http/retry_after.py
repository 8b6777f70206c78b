"""How long a client is to wait, as a `Retry-After` header says it: seconds, or the time of day (RFC 9110, 10.2.3)."""

import re
from datetime import UTC
from email.utils import parsedate_to_datetime

__all__ = ["retry_after"]


def retry_after(value: str | None, now: float) -> float | None:
    """The seconds to wait, none of them below 0, for somebody whose clock says `now`, in seconds since 1970. None
    where the header is missing or says neither."""
    text = (value or "").strip(" \t")
    if re.fullmatch(r"[0-9]{1,15}", text):
        return float(text)
    try:
        date = parsedate_to_datetime(text)
        return max(0.0, date.replace(tzinfo=date.tzinfo or UTC).timestamp() - now)
    except (ValueError, OverflowError):
        return None
