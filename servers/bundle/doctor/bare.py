"""What a doctor can say where its own libraries are missing: which are, and those of the servers."""

import json
import platform
from collections.abc import Iterator, Sequence

from shared.kit.installation import NAME, Installation, this_installation
from shared.kit.program import plain
from shared.version import __version__

from .findings import Finding, fault, fine, warning

__all__ = ["look", "report"]

_OWN = "catalog"
# These are for all servers, and for developers.
_OTHERS = ("all", "client", "dev", "http")


def report(words: Sequence[str]) -> int:
    """Prints what is there and what is missing; the exit code."""
    found = list(look(this_installation()))
    if "--json" in words:
        print(json.dumps([finding._asdict() for finding in found], indent=2))  # noqa: T201 - it is the output
        return 1
    for severity, where, what, fix in found:
        line = f"{severity:8}{where}: {what}" + (f". Fix: {fix}" if fix else "")
        print(plain(line))  # noqa: T201 - it is the output
    return 1


def look(copy: Installation) -> Iterator[Finding]:
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
