"""What queries of Prometheus ask for, and whether a running server has it."""

import re
from collections.abc import Iterable, Mapping

from prometheus_client.parser import text_string_to_metric_families

OF_THE_SCRAPE = {"up", "job", "instance"}
"""What Prometheus itself adds."""
_SELECTOR = re.compile(r"\b(up|(?:mcp|process)_\w+)\b(?:\{([^}]*)\})?")
_BY = re.compile(r"\bby \(([^)]*)\)")
_LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")

Exposed = Mapping[str, set[str]]
"""The labels of the samples of each name."""


def exposed_in(text: str) -> Exposed:
    """What stands in the answer of /metrics."""
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def families_in(text: str) -> set[str]:
    """The names of the metrics in it, without what samples of one metric are told apart by."""
    return {family.name for family in text_string_to_metric_families(text)}


def metrics_of(query: str) -> set[str]:
    """The names of the samples that it asks for."""
    return {name for name, _ in _SELECTOR.findall(query)}


def kept_labels(query: str) -> set[str]:
    """The labels that its result is told apart by, where it sums up."""
    return {name.strip() for names in _BY.findall(query) for name in names.split(",")}


def missing(query: str, exposed: Exposed) -> list[str]:
    """What it requires that is not there: samples, and labels of them."""
    found: list[str] = []
    for name, selectors in _SELECTOR.findall(query):
        if name in OF_THE_SCRAPE:
            continue
        if name not in exposed:
            found.append(name)
            continue
        asked = {*_LABEL.findall(re.sub(r'"[^"]*"', '""', selectors)), *kept_labels(query)}
        found += [f"{name}{{{label}}}" for label in sorted(asked - OF_THE_SCRAPE - exposed[name])]
    return found


def only_of_replicas(names: Iterable[str]) -> bool:
    """Whether none of them is missed where one process serves, which shares nothing."""
    return all(name.startswith(("mcp_store_", "mcp_worker")) for name in names)


def untold(families: Iterable[str], queries: Iterable[str]) -> list[str]:
    """Those of the metrics that no query asks for."""
    asked = {name for query in queries for name in metrics_of(query)}
    return [one for one in sorted(families) if not any(re.fullmatch(rf"{one}(_\w+)?", name) for name in asked)]
