"""What a check found; and what a doctor can say where its own libraries are missing: which are, and those of the
servers.

So nothing is imported here but the standard library, and what needs nothing else.
"""

import json
import platform
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from shared.program.installation import NAME, Installation, this_installation
from shared.text import plain
from shared.version import __version__


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

    @property
    def line(self) -> str:
        """What people are told; how much it matters stands in the first eight columns."""
        return plain(f"{self.severity:8}{self.where}: {self.what}" + (f". Fix: {self.fix}" if self.fix else ""))


def fine(where: str, what: str) -> Finding:
    """All is well."""
    return Finding(Severity.OK, where, what)


def warning(where: str, what: str, fix: str) -> Finding:
    """It works, but."""
    return Finding(Severity.WARNING, where, what, fix)


def fault(where: str, what: str, fix: str) -> Finding:
    """It does not work."""
    return Finding(Severity.FAULT, where, what, fix)


_OWN = "catalog"
# These are for all servers, and for developers.
_OTHERS = ("all", "auth", "client", "dev", "http", "keyring")


def report_libraries(words: Sequence[str]) -> int:
    """Prints what is there and what is missing; the exit code."""
    found = list(look_at_libraries(this_installation()))
    if "--json" in words:
        print(json.dumps([finding._asdict() for finding in found], indent=2))  # noqa: T201 - it is the output
        return 1
    for finding in found:
        print(finding.line)  # noqa: T201 - it is the output
    return 1


def look_at_libraries(copy: Installation) -> Iterator[Finding]:
    """What is there of an installation, and what is missing."""
    yield fine(str(copy.python), f"Python {platform.python_version()}, with {NAME} {__version__}")
    lacking = copy.lacking()
    for extra, libraries in sorted(lacking.items()):
        if extra == _OWN or extra in _OTHERS:
            continue
        if libraries:
            yield warning(extra, f"its extra {extra!r} is not installed: {', '.join(libraries)}", copy.line(extra))
        else:
            yield fine(extra, f"the libraries of its extra {extra!r} are installed")
    missing = ", ".join(lacking.get(_OWN, [])) or "libraries of its own"
    what = f"it looks at no client, and starts no server, since its extra {_OWN!r} is not installed: {missing}"
    yield fault("doctor", what, copy.line(_OWN))
