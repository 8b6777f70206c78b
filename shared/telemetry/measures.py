"""The counts of each server, as a table: the same for every reader and protocol.

Names are those of OpenTelemetry; Prometheus has `_` instead of a dot, and `_total` at the end of a counter
(https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/).
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from .metrics import Figures
from .readiness import Phase

REQUEST_LABELS = ("server", "method", "tool")
"""The labels of requests."""
DURATION = ("mcp.request.duration", "Time from a request to its answer.")
"""The name and the description of the histogram of latencies, in seconds."""

_LIMITS = ("attempts", "bytes", "calls", "rate", "sessions")
_STATES = tuple(phase.value for phase in Phase if phase is not Phase.DEGRADED)
"""The phases without "degraded", which is the result of a check, since reading the counts causes no check."""

Samples = Iterable[tuple[tuple[str, ...], float]]
"""Values with their labels."""


class Measure(NamedTuple):
    """One of the measured values."""

    name: str
    text: str
    labels: tuple[str, ...]
    samples: Callable[[Figures], Samples]
    """Returns the values of one server."""
    only_grows: bool = True


def _single(name: str, text: str, value: Callable[[Figures], float | None], *, only_grows: bool = False) -> Measure:
    """Return the measure with one value per server, or none for a server without the value."""

    def samples(figures: Figures) -> Samples:
        current = value(figures)
        return () if current is None else [((figures.server,), int(current))]

    return Measure(name, text, ("server",), samples, only_grows)


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
        only_grows=True,
    ),
    _single(
        "mcp.store.lost",
        "Number of times this replica lost its lease, and its sessions moved to other replicas.",
        lambda figures: figures.store_lost,
        only_grows=True,
    ),
    _single(
        "mcp.store.up", "Whether the store shared by the replicas can be reached.", lambda figures: figures.store_up
    ),
    Measure(
        "mcp.server.info",
        "The URL of the server, and its version.",
        ("server", "path", "version"),
        lambda figures: [((figures.server, figures.path, figures.version), 1)],
        only_grows=False,
    ),
    Measure(
        "mcp.server.state",
        "The state of the server: 1 for the current state, else 0.",
        ("server", "state"),
        lambda figures: (((figures.server, state), int(figures.state == state)) for state in _STATES),
        only_grows=False,
    ),
    _single("mcp.server.up", "Whether the server accepts requests.", lambda figures: figures.up),
    _single("mcp.sessions", "Sessions that are open.", lambda figures: figures.sessions),
    _single("mcp.streams", "Requests and streams that are being served.", lambda figures: figures.streams),
    _single("mcp.subscriptions", "Resources with at least one subscriber.", lambda figures: figures.subscriptions),
)
"""All measures except the latencies. Every server reports the current values, except the state of the store, which
only servers with a store report. A series of requests does not exist before its first request."""
