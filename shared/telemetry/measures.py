"""What is counted of each server, as a table: whoever reads the counts, by whatever protocol, is told the same.

Names are written as OpenTelemetry has them; Prometheus has `_` where they have a dot, and `_total` after what only
grows (https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/).
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from .metrics import Figures
from .readiness import Phase

BY = ("server", "method", "tool")
"""What requests are told apart by."""
DURATION = ("mcp.request.duration", "Time from a request to its answer.")
"""The name and the meaning of the histogram of latencies, in seconds."""

_LIMITS = ("attempts", "bytes", "calls", "rate", "sessions")
_STATES = tuple(one.value for one in Phase if one is not Phase.DEGRADED)
"""A check says whether a server is degraded, and nobody who reads counts has one run."""

Samples = Iterator[tuple[tuple[str, ...], float]]


class Measure(NamedTuple):
    """One of the counts."""

    name: str
    text: str
    labels: tuple[str, ...]
    samples: Callable[[Figures], Samples]
    """Of one server each value, with those of the labels."""
    only_grows: bool = True


def _requests(one: Figures) -> Samples:
    for labels, series in one.metrics:
        yield (one.server, *labels), series.requests


def _errors(one: Figures) -> Samples:
    for labels, series in one.metrics:
        for kind, count in sorted(series.errors.items()):
            yield (one.server, *labels, kind), count


def _refused(one: Figures) -> Samples:
    for status, count in sorted(one.refused.items()):
        yield (one.server, str(status)), count


def _limited(one: Figures) -> Samples:
    for limit in _LIMITS:
        yield (one.server, limit), one.limited.get(limit, 0)


def _unwritten(one: Figures) -> Samples:
    if one.unwritten is not None:
        yield (one.server,), one.unwritten


def _store_up(one: Figures) -> Samples:
    if one.store_up is not None:
        yield (one.server,), int(one.store_up)


def _store_lost(one: Figures) -> Samples:
    if one.store_lost is not None:
        yield (one.server,), one.store_lost


def _about(one: Figures) -> Samples:
    yield (one.server, one.path, one.version), 1


def _state(one: Figures) -> Samples:
    for state in _STATES:
        yield (one.server, state), int(one.state == state)


def _now(name: str, text: str, value: Callable[[Figures], float]) -> Measure:
    """What is so at the moment."""

    def samples(one: Figures) -> Samples:
        yield (one.server,), value(one)

    return Measure(name, text, ("server",), samples, only_grows=False)


MEASURES = (
    Measure("mcp.requests", "Requests that came.", BY, _requests),
    Measure(
        "mcp.request.errors",
        "Requests answered with an error, by whose it is: the tool's, the client's or the server's.",
        (*BY, "kind"),
        _errors,
    ),
    Measure(
        "mcp.http.refused",
        "HTTP requests refused before the protocol came to them.",
        ("server", "status"),
        _refused,
    ),
    Measure(
        "mcp.limited", "What was refused since one client had enough, by the limit.", ("server", "limit"), _limited
    ),
    Measure(
        "mcp.audit.unwritten",
        "Lines of the program's audit log that could not be written.",
        ("server",),
        _unwritten,
    ),
    Measure(
        "mcp.store.lost",
        "Times that this replica lost its lease, and with it its sessions to the others.",
        ("server",),
        _store_lost,
    ),
    Measure(
        "mcp.store.up",
        "Whether what the replicas share can be reached.",
        ("server",),
        _store_up,
        only_grows=False,
    ),
    Measure("mcp.server.info", "Where the server is, and its version.", ("server", "path", "version"), _about, False),
    Measure(
        "mcp.server.state", "How far the server is: 1 for what it is, else 0.", ("server", "state"), _state, False
    ),
    _now("mcp.server.up", "Whether the server takes requests.", lambda one: int(one.up)),
    _now("mcp.sessions", "Sessions that are open.", lambda one: one.sessions),
    _now("mcp.streams", "Requests and streams that are being served.", lambda one: one.streams),
    _now("mcp.subscriptions", "Resources that somebody subscribes to.", lambda one: one.subscriptions),
)
"""All but the latencies. Every server has what is so at the moment, but that of the store only with one; a series of
requests is there from the first of them on."""
