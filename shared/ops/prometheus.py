"""The counts of servers as Prometheus reads them, written by `prometheus-client`.

Names and units follow https://prometheus.io/docs/practices/naming/. This module is loaded with the first scrape:
before that nothing needs the library.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from .metrics import BUCKETS, Figures, Series
from .siblings import Whole

__all__ = ["exposition"]

_BOUNDS = (*map(str, BUCKETS), "+Inf")
_BY = ("server", "method", "tool")

_LIMITS = ("attempts", "bytes", "calls", "rate", "sessions")

_GAUGES: tuple[tuple[str, str, Callable[[Figures], float]], ...] = (
    ("mcp_server_up", "Whether the server takes requests.", lambda one: one.up),
    ("mcp_sessions", "Sessions that are open.", lambda one: one.sessions),
    ("mcp_streams", "Requests and streams that are being served.", lambda one: one.streams),
    ("mcp_subscriptions", "Resources that somebody subscribes to.", lambda one: one.subscriptions),
)


def exposition(told: Sequence[Figures] | Whole, accept: str) -> tuple[bytes, str]:
    """The text for whoever accepts `accept`, and its content type. What the process takes is in it as well, where
    the system has `/proc`; where several processes serve, what each of them takes."""
    registry = CollectorRegistry()
    if isinstance(told, Whole):
        registry.register(_Servers(told.figures))
        registry.register(_Workers(told))
    else:
        registry.register(_Servers(told))
        ProcessCollector(registry=registry)
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


class _Servers(Collector):
    """The metrics of all servers. Every server has every gauge; a series is there from the first request on."""

    def __init__(self, figures: Sequence[Figures]) -> None:
        self._figures = figures

    def collect(self) -> Iterable[Metric]:
        """One metric after the other, of all servers."""
        yield from self._requests()
        refused = CounterMetricFamily(
            "mcp_http_refused", "HTTP requests refused before the protocol came to them.", labels=("server", "status")
        )
        for one in self._figures:
            for status, count in sorted(one.refused.items()):
                refused.add_metric((one.server, str(status)), count)
        yield refused
        limited = CounterMetricFamily(
            "mcp_limited", "What was refused since one client had enough, by the limit.", labels=("server", "limit")
        )
        for one in self._figures:
            for limit in _LIMITS:
                limited.add_metric((one.server, limit), one.limited.get(limit, 0))
        yield limited
        unwritten = CounterMetricFamily(
            "mcp_audit_unwritten", "Lines of the program's audit log that could not be written.", labels=("server",)
        )
        for one in self._figures:
            if one.unwritten is not None:
                unwritten.add_metric((one.server,), one.unwritten)
        yield unwritten
        yield from self._gauges()

    def _requests(self) -> Iterator[Metric]:
        requests = CounterMetricFamily("mcp_requests", "Requests that came.", labels=_BY)
        errors = CounterMetricFamily(
            "mcp_request_errors",
            "Requests answered with an error, by whose it is: the tool's, the client's or the server's.",
            labels=(*_BY, "kind"),
        )
        duration = HistogramMetricFamily(
            "mcp_request_duration_seconds", "Time from a request to its answer.", labels=_BY
        )
        for one in self._figures:
            for labels, series in one.metrics:
                by = (one.server, *labels)
                requests.add_metric(by, series.requests)
                for kind, count in sorted(series.errors.items()):
                    errors.add_metric((*by, kind), count)
                duration.add_metric(by, _cumulated(series), series.seconds)
        yield from (requests, errors, duration)

    def _gauges(self) -> Iterator[Metric]:
        for name, text, value in _GAUGES:
            gauge = GaugeMetricFamily(name, text, labels=("server",))
            for one in self._figures:
                gauge.add_metric((one.server,), value(one))
            yield gauge


class _Workers(Collector):
    """The processes that serve one port, and what each of them takes."""

    def __init__(self, whole: Whole) -> None:
        self._whole = whole

    def collect(self) -> Iterable[Metric]:
        """One metric after the other, of all processes."""
        yield GaugeMetricFamily("mcp_workers", "Processes that serve.", len(self._whole.processes) - 1)
        yield CounterMetricFamily(
            "mcp_worker_restarts", "Processes that ended unasked, and were started again.", self._whole.restarts
        )
        families: dict[str, Metric] = {}
        for worker, process in self._whole.processes.items():
            for family in ProcessCollector(pid=partial(int, process), registry=None).collect():
                labelled = families.setdefault(family.name, Metric(family.name, family.documentation, family.type))
                for sample in family.samples:
                    labelled.add_sample(sample.name, {"worker": worker}, sample.value)
        yield from families.values()


def _cumulated(series: Series) -> list[tuple[str, float]]:
    return list(zip(_BOUNDS, accumulate(series.buckets), strict=True))
