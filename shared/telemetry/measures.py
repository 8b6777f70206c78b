"""The counts of each server, as a table: the same for every reader and protocol.

Names are those of OpenTelemetry; Prometheus has `_` instead of a dot, and `_total` at the end of a counter
(https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/).
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from .metrics import Figures
from .readiness import Phase

BY = ("server", "method", "tool")
"""The labels of requests."""
DURATION = ("mcp.request.duration", "Time from a request to its answer.")
"""The name and the description of the histogram of latencies, in seconds."""

_LIMITS = ("attempts", "bytes", "calls", "rate", "sessions")
_STATES = tuple(phase.value for phase in Phase if phase is not Phase.DEGRADED)
"""The phases, without "degraded", which is the result of a check: reading the counts causes no checks."""

Samples = Iterator[tuple[tuple[str, ...], float]]


class Measure(NamedTuple):
    """One of the measured values."""

    name: str
    text: str
    labels: tuple[str, ...]
    samples: Callable[[Figures], Samples]
    """Returns the values of one server, each with its labels."""
    only_grows: bool = True


def _requests(figures: Figures) -> Samples:
    for labels, series in figures.metrics:
        yield (figures.server, *labels), series.requests


def _errors(figures: Figures) -> Samples:
    for labels, series in figures.metrics:
        for kind, count in sorted(series.errors.items()):
            yield (figures.server, *labels, kind), count


def _refused(figures: Figures) -> Samples:
    for status, count in sorted(figures.refused.items()):
        yield (figures.server, str(status)), count


def _limited(figures: Figures) -> Samples:
    for limit in _LIMITS:
        yield (figures.server, limit), figures.limited.get(limit, 0)


def _unwritten(figures: Figures) -> Samples:
    if figures.unwritten is not None:
        yield (figures.server,), figures.unwritten


def _store_up(figures: Figures) -> Samples:
    if figures.store_up is not None:
        yield (figures.server,), int(figures.store_up)


def _store_lost(figures: Figures) -> Samples:
    if figures.store_lost is not None:
        yield (figures.server,), figures.store_lost


def _about(figures: Figures) -> Samples:
    yield (figures.server, figures.path, figures.version), 1


def _state(figures: Figures) -> Samples:
    for state in _STATES:
        yield (figures.server, state), int(figures.state == state)


def _now(name: str, text: str, value: Callable[[Figures], float]) -> Measure:
    """A current value."""

    def samples(figures: Figures) -> Samples:
        yield (figures.server,), value(figures)

    return Measure(name, text, ("server",), samples, only_grows=False)


MEASURES = (
    Measure("mcp.requests", "Requests received.", BY, _requests),
    Measure(
        "mcp.request.errors",
        "Requests answered with an error, by its origin: the tool, the client or the server.",
        (*BY, "kind"),
        _errors,
    ),
    Measure(
        "mcp.http.refused", "HTTP requests refused before the protocol handled them.", ("server", "status"), _refused
    ),
    Measure(
        "mcp.limited", "Requests refused because a client reached a limit, by limit.", ("server", "limit"), _limited
    ),
    Measure(
        "mcp.audit.unwritten", "Lines of the program's audit log that could not be written.", ("server",), _unwritten
    ),
    Measure(
        "mcp.store.lost",
        "Number of times this replica lost its lease, and its sessions moved to other replicas.",
        ("server",),
        _store_lost,
    ),
    Measure(
        "mcp.store.up",
        "Whether the store shared by the replicas can be reached.",
        ("server",),
        _store_up,
        only_grows=False,
    ),
    Measure(
        "mcp.server.info", "The URL of the server, and its version.", ("server", "path", "version"), _about, False
    ),
    Measure(
        "mcp.server.state",
        "The state of the server: 1 for the current state, else 0.",
        ("server", "state"),
        _state,
        False,
    ),
    _now("mcp.server.up", "Whether the server accepts requests.", lambda figures: int(figures.up)),
    _now("mcp.sessions", "Sessions that are open.", lambda figures: figures.sessions),
    _now("mcp.streams", "Requests and streams that are being served.", lambda figures: figures.streams),
    _now("mcp.subscriptions", "Resources with at least one subscriber.", lambda figures: figures.subscriptions),
)
"""All measures except the latencies. Every server reports the current values, except the state of the store, which
only servers with a store report. A series of requests does not exist before its first request."""
