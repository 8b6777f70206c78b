"""What the tool `changes` says in words."""

from datetime import UTC, datetime

from .journal import Changes

__all__ = ["changes_text"]


def changes_text(found: Changes) -> str:
    """One change a line, and what to know besides."""
    lines = [f"{_time(change.time)} {change.kind} {change.path}" for change in found.changes]
    if found.overflow:
        lines.append("[overflow: the cursor is too old, changes are missing; look for yourself, then go on]")
    if found.more:
        lines.append("[there is more: call again at once]")
    if found.partial:
        lines.append("[partial: there are too many files, changes of some are not seen]")
    return "\n".join([*lines, f"[cursor: {found.cursor}]"])


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
