"""The table of all measured values, from which both OpenTelemetry and Prometheus get them.

The names are those of OpenTelemetry. In Prometheus, they have `_` instead of a dot, and counters end with `_total`
(https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/).
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from .metrics import Figures
from .readiness import Phase

REQUEST_LABELS = ("server", "method", "tool")
"""The labels of each measure of requests."""
DURATION = ("mcp.request.duration", "Time from a request to its answer.")
"""The name and the description of the histogram of latencies, in seconds."""

_LIMITS = ("attempts", "bytes", "calls", "rate", "sessions")
_STATES = tuple(phase.value for phase in Phase if phase is not Phase.DEGRADED)
"""All phases except "degraded", which only a readiness check finds out; reading the values does not cause one."""

Samples = Iterable[tuple[tuple[str, ...], float]]
"""Pairs of the values of the labels, and the measured value."""


class Measure(NamedTuple):
    """One of the measures."""

    name: str
    description: str
    labels: tuple[str, ...]
    samples: Callable[[Figures], Samples]
    """Returns the samples of one server."""
    is_counter: bool = True


def _single(
    name: str, description: str, value: Callable[[Figures], float | None], *, is_counter: bool = False
) -> Measure:
    """Return a measure with one value per server. If `value` returns None, the server does not have it."""

    def samples(figures: Figures) -> Samples:
        current = value(figures)
        return () if current is None else [((figures.server,), int(current))]

    return Measure(name, description, ("server",), samples, is_counter)


MEASURES = (
    Measure(
        "mcp.requests",
        "Requests received.",
        REQUEST_LABELS,
        lambda figures: (((figures.server, *labels), series.requests) for labels, series in figures.metrics),
    ),
    Measure(
        "mcp.request.errors",
        "Requests answered with an error, by its origin: the tool, the client or the server.",
        (*REQUEST_LABELS, "kind"),
        lambda figures: (
            ((figures.server, *labels, kind), count)
            for labels, series in figures.metrics
            for kind, count in sorted(series.errors.items())
        ),
    ),
    Measure(
        "mcp.http.refused",
        "HTTP requests refused before the protocol handled them.",
        ("server", "status"),
        lambda figures: (((figures.server, str(status)), n) for status, n in sorted(figures.refused.items())),
    ),
    Measure(
        "mcp.limited",
        "Requests refused because a client reached a limit, by limit.",
        ("server", "limit"),
        lambda figures: (((figures.server, limit), figures.limited.get(limit, 0)) for limit in _LIMITS),
    ),
    _single(
        "mcp.audit.unwritten",
        "Lines of the program's audit log that could not be written.",
        lambda figures: figures.unwritten,
        is_counter=True,
    ),
    _single(
        "mcp.store.lost",
        "Number of times this replica lost its lease, and its sessions moved to other replicas.",
        lambda figures: figures.store_lost,
        is_counter=True,
    ),
    _single(
        "mcp.store.up", "Whether the store shared by the replicas can be reached.", lambda figures: figures.store_up
    ),
    Measure(
        "mcp.server.info",
        "The URL of the server, and its version.",
        ("server", "path", "version"),
        lambda figures: [((figures.server, figures.path, figures.version), 1)],
        is_counter=False,
    ),
    Measure(
        "mcp.server.state",
        "The state of the server: 1 for the current state, else 0.",
        ("server", "state"),
        lambda figures: (((figures.server, state), int(figures.state == state)) for state in _STATES),
        is_counter=False,
    ),
    _single("mcp.server.up", "Whether the server accepts requests.", lambda figures: figures.up),
    _single("mcp.sessions", "Sessions that are open.", lambda figures: figures.sessions),
    _single("mcp.streams", "Requests and streams that are being served.", lambda figures: figures.streams),
    _single("mcp.subscriptions", "Resources with at least one subscriber.", lambda figures: figures.subscriptions),
)
"""All measures except the latencies. Only servers with an audit log or a store have the measures of these two. The
samples of a method or tool begin with its first request."""
