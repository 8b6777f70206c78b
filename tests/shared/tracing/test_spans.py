"""Spans of the installed tracer, and spans without a tracer."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from shared.tracing import spans
from shared.tracing.spans import Attributes, Kind, Span, attempt, set_tracer, span


class Collector:
    def __init__(self) -> None:
        self.seen: list[object] = []

    @contextmanager
    def __call__(self, name: str, attributes: Attributes, kind: Kind) -> Iterator[Span]:
        self.seen.append((name, dict(attributes), kind))
        yield self

    def note(self, name: str, value: str | int | float | bool) -> None:
        self.seen.append((name, value))

    def fail(self, kind: str, message: str = "") -> None:
        self.seen.append((kind, message))

    def drop(self) -> None:
        self.seen.append("dropped")


def test_spans_are_those_of_the_tracer() -> None:
    collector = Collector()
    set_tracer(collector)
    try:
        with span("load", {"a": 1}, kind="client") as one:
            one.note("b", 2)
            one.fail("timeout")
        assert spans.tracer is collector
    finally:
        set_tracer(None)
    assert collector.seen == [("load", {"a": 1}, "client"), ("b", 2), ("timeout", "")]


@pytest.mark.parametrize("result", [7, None, ValueError("bad")], ids=["result", "no result", "error"])
def test_attempts_without_a_result_drop_their_span(result: object) -> None:
    def work() -> object:
        if isinstance(result, ValueError):
            raise result
        return result

    collector = Collector()
    set_tracer(collector)
    try:
        with suppress(ValueError):
            assert attempt("read", {}, work) == result
    finally:
        set_tracer(None)
    assert collector.seen == [("read", {}, "internal"), *([] if result == 7 else ["dropped"])]


def test_spans_without_a_tracer_do_nothing_and_share_an_object() -> None:
    assert spans.tracer is None
    assert span("a", {}) is span("b", {})
    with span("a", {}) as one, span("b", {}) as other:
        one.note("c", 1)
        other.fail("d")
