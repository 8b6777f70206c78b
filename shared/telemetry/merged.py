"""The counts of servers that several processes serve, as those of one process, and as JSON on the way between them.

Counts are summed, and so are sessions, streams and subscriptions; a server is up where it is in all of them, and its
store where all reach it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from .metrics import Figures, Labels, Series
from .readiness import Phase

READY = Phase.READY.value


def merged(processes: Iterable[Sequence[Figures]]) -> list[Figures]:
    """The figures of each server, over all processes that have any of it."""
    servers: dict[str, list[Figures]] = {}
    for figures in processes:
        for one in figures:
            servers.setdefault(one.server, []).append(one)
    return [_merged(server, figures) for server, figures in servers.items()]


def past(figures: Sequence[Figures]) -> list[Figures]:
    """What stays of the figures of a process that has ended: what it counted, but nothing that it held open."""
    return [
        one._replace(up=True, state=READY, store_up=None, sessions=0, streams=0, subscriptions=0) for one in figures
    ]


def to_json(figures: Sequence[Figures]) -> list[Any]:
    """The figures in types that JSON has."""
    return [
        {
            **one._asdict(),
            "metrics": [
                [labels, series.requests, series.errors, series.buckets, series.seconds]
                for labels, series in one.metrics
            ],
        }
        for one in figures
    ]


def from_json(written: Sequence[Any]) -> list[Figures]:
    """The figures that `to_json` gave. Raises KeyError, TypeError or ValueError for anything else."""
    return [_read(**one) for one in written]


def _merged(server: str, figures: Sequence[Figures]) -> Figures:
    metrics: dict[Labels, Series] = {}
    refused, limited = Counter[int](), Counter[str]()
    for one in figures:
        refused.update(one.refused)
        limited.update(one.limited)
        for labels, series in one.metrics:
            metrics.setdefault(labels, Series(labels)).add(series)
    unwritten = [one.unwritten for one in figures if one.unwritten is not None]
    store_up = [one.store_up for one in figures if one.store_up is not None]
    store_lost = [one.store_lost for one in figures if one.store_lost is not None]
    return Figures(
        server=server,
        metrics=sorted(metrics.items()),
        up=all(one.up for one in figures),
        sessions=sum(one.sessions for one in figures),
        streams=sum(one.streams for one in figures),
        subscriptions=sum(one.subscriptions for one in figures),
        refused=refused,
        unwritten=sum(unwritten) if unwritten else None,
        limited=limited,
        store_up=all(store_up) if store_up else None,
        store_lost=sum(store_lost) if store_lost else None,
        path=next((one.path for one in figures if one.path), ""),
        version=next((one.version for one in figures if one.version), ""),
        state=next((one.state for one in figures if one.state != READY), READY),
    )


def _read(metrics: Sequence[Any], refused: dict[str, int], **others: Any) -> Figures:
    counted = []
    for labels, requests, errors, buckets, seconds in metrics:
        series = Series(Labels(*labels))
        series.requests, series.errors, series.buckets, series.seconds = requests, Counter(errors), buckets, seconds
        counted.append((series.labels, series))
    # JSON has no numbers as keys.
    return Figures(metrics=counted, refused={int(status): count for status, count in refused.items()}, **others)
