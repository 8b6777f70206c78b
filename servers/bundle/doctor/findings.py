"""What a check found."""

from enum import StrEnum
from typing import NamedTuple

__all__ = ["Finding", "Severity", "fault", "fine", "warning"]


class Severity(StrEnum):
    """How much it matters."""

    OK = "ok"
    WARNING = "warning"
    """It works as it is, maybe not as it is meant."""
    FAULT = "fault"
    """It does not work."""


class Finding(NamedTuple):
    """One thing that was looked at. No secret may get into it: no token, no header, no value of a variable."""

    severity: Severity
    where: str
    what: str
    fix: str = ""
    """What to do about it; empty where there is nothing to do."""


def fine(where: str, what: str) -> Finding:
    """All is well."""
    return Finding(Severity.OK, where, what)


def warning(where: str, what: str, fix: str) -> Finding:
    """It works, but."""
    return Finding(Severity.WARNING, where, what, fix)


def fault(where: str, what: str, fix: str) -> Finding:
    """It does not work."""
    return Finding(Severity.FAULT, where, what, fix)
