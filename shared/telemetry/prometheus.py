"""The counts of servers as Prometheus reads them, written by `prometheus-client`.

Names and units follow https://prometheus.io/docs/practices/naming/. This module is loaded with the first scrape:
before that nothing needs the library.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import accumulate

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from .measures import BY, DURATION, MEASURES, Measure
from .metrics import BUCKETS, Figures
from .siblings import Whole

_BOUNDS = (*map(str, BUCKETS), "+Inf")


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
    """The metrics of all servers."""

    def __init__(self, figures: Sequence[Figures]) -> None:
        self._figures = figures

    def collect(self) -> Iterable[Metric]:
        """One metric after the other, of all servers."""
        yield from map(self._family, MEASURES)
        name, text = DURATION
        duration = HistogramMetricFamily(f"{_name(name)}_seconds", text, labels=BY)
        for one in self._figures:
            for labels, series in one.metrics:
                # Prometheus counts in each bucket what all smaller ones have as well.
                buckets = list(zip(_BOUNDS, accumulate(series.buckets), strict=True))
                duration.add_metric((one.server, *labels), buckets, series.seconds)
        yield duration

    def _family(self, measure: Measure) -> Metric:
        kind = CounterMetricFamily if measure.only_grows else GaugeMetricFamily
        family: CounterMetricFamily | GaugeMetricFamily = kind(
            _name(measure.name), measure.text, labels=measure.labels
        )
        for one in self._figures:
            for labels, value in measure.samples(one):
                family.add_metric(labels, value)
        return family


def _name(name: str) -> str:
    return name.replace(".", "_")


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
