"""Merges the figures of servers that several processes serve, and converts them to JSON, for their exchange.

Counts, sessions, streams and subscriptions are added up. A server is up if it is up in all processes, and its store
is up if all of them can reach it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from .metrics import Figures, Labels, Series
from .readiness import Phase

READY = Phase.READY.value


def merge(processes: Iterable[Sequence[Figures]]) -> list[Figures]:
    """Return the figures of each server, merged over all processes that serve it."""
    servers: dict[str, list[Figures]] = {}
    for figures in processes:
        for entry in figures:
            servers.setdefault(entry.server, []).append(entry)
    return [_merge_server(server, figures) for server, figures in servers.items()]


def keep_counts(figures: Sequence[Figures]) -> list[Figures]:
    """Return the figures of a process that has ended, as they are added to later totals: its counts remain, while its
    sessions, streams and subscriptions are 0."""
    return [
        entry._replace(up=True, state=READY, store_up=None, sessions=0, streams=0, subscriptions=0)
        for entry in figures
    ]


def to_json(figures: Sequence[Figures]) -> list[Any]:
    """Return the figures as values that JSON can represent."""
    return [
        {
            **entry._asdict(),
            "metrics": [
                [labels, series.requests, series.errors, series.buckets, series.seconds]
                for labels, series in entry.metrics
            ],
        }
        for entry in figures
    ]


def from_json(data: Sequence[Any]) -> list[Figures]:
    """Return the figures in the result of `to_json`. Raises KeyError, TypeError or ValueError for anything else."""
    return [_read_entry(**entry) for entry in data]


def _merge_server(server: str, figures: Sequence[Figures]) -> Figures:
    metrics: dict[Labels, Series] = {}
    refused, limited = Counter[int](), Counter[str]()
    for entry in figures:
        refused.update(entry.refused)
        limited.update(entry.limited)
        for labels, series in entry.metrics:
            metrics.setdefault(labels, Series(labels)).add(series)
    unwritten = [entry.unwritten for entry in figures if entry.unwritten is not None]
    store_up = [entry.store_up for entry in figures if entry.store_up is not None]
    store_lost = [entry.store_lost for entry in figures if entry.store_lost is not None]
    return Figures(
        server=server,
        metrics=sorted(metrics.items()),
        up=all(entry.up for entry in figures),
        sessions=sum(entry.sessions for entry in figures),
        streams=sum(entry.streams for entry in figures),
        subscriptions=sum(entry.subscriptions for entry in figures),
        refused=refused,
        unwritten=sum(unwritten) if unwritten else None,
        limited=limited,
        store_up=all(store_up) if store_up else None,
        store_lost=sum(store_lost) if store_lost else None,
        path=next((entry.path for entry in figures if entry.path), ""),
        version=next((entry.version for entry in figures if entry.version), ""),
        state=next((entry.state for entry in figures if entry.state != READY), READY),
    )


def _read_entry(metrics: Sequence[Any], refused: dict[str, int], **others: Any) -> Figures:
    metrics_of_entry = []
    for labels, requests, errors, buckets, seconds in metrics:
        series = Series(Labels(*labels))
        series.requests, series.errors, series.buckets, series.seconds = requests, Counter(errors), buckets, seconds
        metrics_of_entry.append((series.labels, series))
    # The keys of a JSON object are strings.
    return Figures(
        metrics=metrics_of_entry, refused={int(status): count for status, count in refused.items()}, **others
    )
