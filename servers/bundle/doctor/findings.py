"""Findings of checks, and a report that replaces the checks if the doctor's own libraries are missing.

This module imports only the standard library, and modules that need nothing else, so that it works without libraries.
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
    """It works, but maybe not as the user intends."""
    FAULT = "fault"
    """It does not work."""


class Finding(NamedTuple):
    """The result of one check. It must not contain secrets: no token, no header, no value of a variable."""

    severity: Severity
    where: str
    what: str
    fix: str = ""
    """What the user can do; empty if nothing has to be done."""

    @property
    def line(self) -> str:
        """The finding as a line of text, with the severity in the first eight columns."""
        return plain(f"{self.severity:8}{self.where}: {self.what}" + (f". Fix: {self.fix}" if self.fix else ""))


def fine(where: str, what: str) -> Finding:
    """Return a finding that something is in order."""
    return Finding(Severity.OK, where, what)


def warning(where: str, what: str, fix: str) -> Finding:
    """Return a warning."""
    return Finding(Severity.WARNING, where, what, fix)


def fault(where: str, what: str, fix: str) -> Finding:
    """Return a fault."""
    return Finding(Severity.FAULT, where, what, fix)


_OWN = "catalog"
# Extras shared by all servers, or for developers only.
_OTHERS = ("all", "auth", "client", "dev", "http", "keyring")


def report_libraries(argv: Sequence[str]) -> int:
    """Print which libraries are installed and which are missing. Return the exit code 1, since this is only called if
    one is missing."""
    findings = list(check_libraries(this_installation()))
    if "--json" in argv:
        print(json.dumps([finding._asdict() for finding in findings], indent=2))  # noqa: T201 - it is the output
        return 1
    for finding in findings:
        print(finding.line)  # noqa: T201 - it is the output
    return 1


def check_libraries(installation: Installation) -> Iterator[Finding]:
    """Yield the findings about the Python and the libraries of an installation."""
    yield fine(str(installation.python), f"Python {platform.python_version()}, with {NAME} {__version__}")
    missing_libraries = installation.missing_libraries()
    for extra, libraries in sorted(missing_libraries.items()):
        if extra == _OWN or extra in _OTHERS:
            continue
        if libraries:
            what = f"its extra {extra!r} is not installed: {', '.join(libraries)}"
            yield warning(extra, what, installation.install_command(extra))
        else:
            yield fine(extra, f"the libraries of its extra {extra!r} are installed")
    missing = ", ".join(missing_libraries.get(_OWN, [])) or "libraries of its own"
    what = f"clients and servers were not checked, because the extra {_OWN!r} is not installed: {missing}"
    yield fault("doctor", what, installation.install_command(_OWN))
