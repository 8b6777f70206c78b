"""The counts of servers in the format of Prometheus, written by `prometheus-client`.

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

from .measures import DURATION, MEASURES, REQUEST_LABELS
from .metrics import BUCKETS, Figures
from .siblings import Totals

_BOUNDS = (*map(str, BUCKETS), "+Inf")


def exposition(source: Sequence[Figures] | Totals, accept: str) -> tuple[bytes, str]:
    """Return the text in a format that `accept` allows, and its content type. It includes the resources of the
    process, or of each process if there are several, on systems with `/proc`."""
    registry = CollectorRegistry()
    if isinstance(source, Totals):
        registry.register(_Servers(source.figures))
        registry.register(_Workers(source))
    else:
        registry.register(_Servers(source))
        ProcessCollector(registry=registry)
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


class _Servers(Collector):
    """The metrics of all servers."""

    def __init__(self, figures: Sequence[Figures]) -> None:
        self._figures = figures

    def collect(self) -> Iterable[Metric]:
        """Return the metrics of all servers, in sequence."""
        for measure in MEASURES:
            family_type = CounterMetricFamily if measure.only_grows else GaugeMetricFamily
            family: CounterMetricFamily | GaugeMetricFamily = family_type(
                _metric_name(measure.name), measure.text, labels=measure.labels
            )
            for entry in self._figures:
                for labels, value in measure.samples(entry):
                    family.add_metric(labels, value)
            yield family
        name, text = DURATION
        duration = HistogramMetricFamily(f"{_metric_name(name)}_seconds", text, labels=REQUEST_LABELS)
        for entry in self._figures:
            for labels, series in entry.metrics:
                # In Prometheus each bucket includes the counts of all smaller ones.
                buckets = list(zip(_BOUNDS, accumulate(series.buckets), strict=True))
                duration.add_metric((entry.server, *labels), buckets, series.seconds)
        yield duration


def _metric_name(name: str) -> str:
    return name.replace(".", "_")


class _Workers(Collector):
    """The processes that serve one port, and the resources of each of them."""

    def __init__(self, totals: Totals) -> None:
        self._totals = totals

    def collect(self) -> Iterable[Metric]:
        """Return the metrics of all processes, in sequence."""
        yield GaugeMetricFamily("mcp_workers", "Processes that are serving.", len(self._totals.processes) - 1)
        yield CounterMetricFamily(
            "mcp_worker_restarts", "Processes that ended unexpectedly and were restarted.", self._totals.restarts
        )
        families: dict[str, Metric] = {}
        for worker, process in self._totals.processes.items():
            for family in ProcessCollector(pid=partial(int, process), registry=None).collect():
                labeled = families.setdefault(family.name, Metric(family.name, family.documentation, family.type))
                for sample in family.samples:
                    labeled.add_sample(sample.name, {"worker": worker}, sample.value)
        yield from families.values()
