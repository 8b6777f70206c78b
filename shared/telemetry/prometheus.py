"""The measures of servers in the format of Prometheus, which `prometheus-client` writes.

Names and units follow https://prometheus.io/docs/practices/naming/. This module is imported at the first scrape,
since nothing else needs the library.
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
    """Return the body of the answer to a scrape, in a format that the header `accept` allows, and its content type.
    On systems with `/proc`, it also contains the CPU time, memory and file descriptors of each process."""
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
    """Yields the metrics of all servers."""

    def __init__(self, figures: Sequence[Figures]) -> None:
        self._figures = figures

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics of all servers."""
        for measure in MEASURES:
            family_type = CounterMetricFamily if measure.is_counter else GaugeMetricFamily
            family: CounterMetricFamily | GaugeMetricFamily = family_type(
                _metric_name(measure.name), measure.description, labels=measure.labels
            )
            for entry in self._figures:
                for labels, value in measure.samples(entry):
                    family.add_metric(labels, value)
            yield family
        name, text = DURATION
        duration = HistogramMetricFamily(f"{_metric_name(name)}_seconds", text, labels=REQUEST_LABELS)
        for entry in self._figures:
            for labels, series in entry.metrics:
                # In Prometheus, the count of a bucket includes those of all smaller buckets.
                buckets = list(zip(_BOUNDS, accumulate(series.buckets), strict=True))
                duration.add_metric((entry.server, *labels), buckets, series.seconds)
        yield duration


def _metric_name(name: str) -> str:
    return name.replace(".", "_")


class _Workers(Collector):
    """Yields the number of worker processes, and the CPU time, memory and file descriptors of each process."""

    def __init__(self, totals: Totals) -> None:
        self._totals = totals

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics of the processes."""
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
