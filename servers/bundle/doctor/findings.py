"""Findings of checks; and the findings that are possible if the doctor's own libraries are missing: which ones, and
which of the servers' are.

So it imports only the standard library, and modules that need nothing else.

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
    """The severity of a finding."""

    OK = "ok"
    WARNING = "warning"
    """It works, but maybe not as intended."""
    FAULT = "fault"
    """It does not work."""


class Finding(NamedTuple):
    """The result of one check. It must not contain secrets: no token, no header, no value of a variable."""

    severity: Severity
    where: str
    what: str
    fix: str = ""
    """The advice; empty if nothing needs to be done."""

    @property
    def line(self) -> str:
        """The line for people, with the severity in the first eight columns."""
        return plain(f"{self.severity:8}{self.where}: {self.what}" + (f". Fix: {self.fix}" if self.fix else ""))


def fine(where: str, what: str) -> Finding:
    """Return the finding that all is well."""
    return Finding(Severity.OK, where, what)


def warning(where: str, what: str, fix: str) -> Finding:
    """Return the finding that it works with a reservation."""
    return Finding(Severity.WARNING, where, what, fix)


def fault(where: str, what: str, fix: str) -> Finding:
    """Return the finding that it does not work."""
    return Finding(Severity.FAULT, where, what, fix)


_OWN = "catalog"
# These belong to all servers, or to developers.
_OTHERS = ("all", "auth", "client", "dev", "http", "keyring")


def report_libraries(words: Sequence[str]) -> int:
    """Print the libraries that are installed and those that are missing; return the exit code."""
    findings = list(look_at_libraries(this_installation()))
    if "--json" in words:
        print(json.dumps([finding._asdict() for finding in findings], indent=2))  # noqa: T201 - it is the output
        return 1
    for finding in findings:
        print(finding.line)  # noqa: T201 - it is the output
    return 1


def look_at_libraries(copy: Installation) -> Iterator[Finding]:
    """Yield the installed and the missing libraries of an installation."""
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
