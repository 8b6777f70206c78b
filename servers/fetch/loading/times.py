"""Points in time and spans as HTTP writes them."""

from email.utils import parsedate_to_datetime

__all__ = ["http_date", "retry_after"]


def http_date(text: str | None) -> float | None:
    """An HTTP date in seconds since 1970, or None where `text` is none."""
    try:
        return parsedate_to_datetime(text or "").timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def retry_after(text: str | None, now: float) -> float | None:
    """The seconds to wait that `Retry-After` names, as a number or as a date; `now` in seconds since 1970."""
    text = (text or "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:12])
    date = http_date(text)
    return None if date is None else max(0.0, date - now)
