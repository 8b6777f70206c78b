"""The five released protocol versions as data. This is the only module that contains their dates.

The versions belong to two eras. In the handshake era, up to 2025-11-25, a session begins with `initialize`, to which
all later messages refer. In the stateless era, from 2026-07-28 on, each request contains all of this itself.

Versions are compared by `order`, their position in `VERSIONS`, never as strings. Each difference between versions is
a field of `Version`; other code reads this field instead of comparing versions.
"""

from .records import record


@record
class Version:
    """One released version of the protocol, with its behavior. Each version has only one object, so `is` compares
    versions."""

    date: str
    order: int
    stateless: bool = False
    """True if there is no `initialize`: each request has the client's version and capabilities in `_meta`."""
    batching: bool = False
    """True if a peer may send arrays of messages (2025-03-26, Basic Protocol, Batching)."""
    argument_errors_are_results: bool = True
    """True if arguments that violate a tool's schema are answered with `isError` (SEP-1303), not -32602."""
    output_schemas: bool = True
    """True if a tool may describe its results in `outputSchema`."""
    priming_events: bool = False
    """True if a stream may begin with an event that has an id and no data (SEP-1699)."""
    task_requests: bool = False
    """True if a request may ask with `params.task` to be run as a task (2025-11-25, Tasks)."""
    resource_not_found: int = -32002
    """The code for a resource that does not exist."""
    missing_capability: int = -32600
    """The code for a request that needs a capability that the client did not declare."""

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __str__(self) -> str:
        return self.date


V2024_11_05 = Version("2024-11-05", 0, argument_errors_are_results=False, output_schemas=False)
V2025_03_26 = Version("2025-03-26", 1, batching=True, argument_errors_are_results=False, output_schemas=False)
V2025_06_18 = Version("2025-06-18", 2, argument_errors_are_results=False)
V2025_11_25 = Version("2025-11-25", 3, priming_events=True, task_requests=True)
V2026_07_28 = Version("2026-07-28", 4, stateless=True, resource_not_found=-32602, missing_capability=-32021)

VERSIONS = (V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28)
HANDSHAKE_VERSIONS = tuple(version for version in VERSIONS if not version.stateless)
NEWEST = VERSIONS[-1]
NEWEST_HANDSHAKE = HANDSHAKE_VERSIONS[-1]

_BY_DATE = {version.date: version for version in VERSIONS}


def find_version(date: object) -> Version | None:
    """Return the version with that `date`; None if there is none."""
    return _BY_DATE.get(date) if isinstance(date, str) else None


def versions_between(oldest: str | None, newest: str | None) -> tuple[Version, ...]:
    """Return the versions from the date `oldest` to the date `newest`, inclusive, the oldest first. None sets no
    limit on that side.

    Raises ValueError if there is no version with that date, or if `newest` is before `oldest`.
    """
    first, last = _bound(oldest, VERSIONS[0]), _bound(newest, NEWEST)
    if first.order > last.order:
        raise ValueError(f"the newest version, {last}, is older than the oldest, {first}")
    return VERSIONS[first.order : last.order + 1]


def _bound(date: str | None, default: Version) -> Version:
    version = default if date is None else find_version(date)
    if version is None:
        raise ValueError(f"there is no protocol version {date!r}")
    return version
