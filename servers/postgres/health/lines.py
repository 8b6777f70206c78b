"""Sizes, durations and percentages in a readable form."""

_SIZES = ("bytes", "kB", "MB", "GB", "TB")
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


def format_size(size: float) -> str:
    """Format bytes like PostgreSQL's `pg_size_pretty`."""
    for unit in _SIZES[:-1]:
        if abs(size) < 10_240:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.0f} {_SIZES[-1]}"


def format_span(seconds: float | None) -> str:
    """Format a duration in its two largest units."""
    if seconds is None:
        return "never"
    for unit, size, part, smaller in (
        ("d", _DAY, "h", _HOUR),
        ("h", _HOUR, "min", _MINUTE),
        ("min", _MINUTE, "s", 1),
    ):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit} {seconds % size // smaller:.0f} {part}"
    return f"{seconds:.1f} s"


def format_ago(seconds: float | None) -> str:
    """Format the time since an event."""
    return "never" if seconds is None else f"{format_span(seconds)} ago"


def format_share(part: float, total: float) -> str:
    """Format the share of `part` in `total` as a percentage."""
    return f"{100 * part / total:.1f} %" if total else "nothing yet"
