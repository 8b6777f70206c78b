"""Spans, which measure parts of the work for a collector. Without a collector, a span costs one check of a variable.

    with span("SELECT shop", {"db.operation.name": "SELECT"}, kind="client") as query:
        ...
        query.note("db.response.returned_rows", 7)

Names and attributes follow OpenTelemetry's semantic conventions, without its library. They must never contain
secrets, arguments or SQL statements.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Literal, Protocol, TypeVar

T = TypeVar("T")

Kind = Literal["internal", "client", "server"]
"""The kind of span: work of this process, a request to another process, or the answer to a request received."""
Attributes = Mapping[str, str | int | float | bool]


class Span(Protocol):
    """An open span. An exception that leaves its block marks it as failed, unless `fail` has done so before."""

    def note(self, name: str, value: str | int | float | bool) -> None:
        """Add an attribute."""

    def fail(self, kind: str, message: str = "") -> None:
        """Mark the span as failed, with a short `kind` from a small set, and the message that the peer receives."""

    def drop(self) -> None:
        """Discard the span: it is not sent."""


class Tracer(Protocol):
    """A collector of spans."""

    def __call__(self, name: str, attributes: Attributes, kind: Kind) -> AbstractContextManager[Span]:
        """Return a context manager for a span within the current one. During its block, the new span is current."""


class _NoSpan:
    """A span that records nothing, because there is no collector."""

    def note(self, name: str, value: str | int | float | bool) -> None:
        pass

    def fail(self, kind: str, message: str = "") -> None:
        pass

    def drop(self) -> None:
        pass


NO_SPAN: AbstractContextManager[Span] = nullcontext(_NoSpan())
"""The span that is used if there is no collector."""
tracer: Tracer | None = None
"""The collector of the spans of this process, if any. The hot path checks it before it computes attributes."""


def span(name: str, attributes: Attributes, kind: Kind = "internal") -> AbstractContextManager[Span]:
    """Return a context manager for a span, which can be entered once."""
    return NO_SPAN if tracer is None else tracer(name, attributes, kind)


def attempt(name: str, attributes: Attributes, work: Callable[[], T | None], kind: Kind = "internal") -> T | None:
    """Return the result of a fast way to do some work, and record a span for it. If `work` returns None or raises,
    the span is dropped, because the caller then does the work in another way, with a span of its own."""
    with span(name, attributes, kind) as open_span:
        result = None
        try:
            result = work()
            return result
        finally:
            if result is None:
                open_span.drop()


def set_tracer(collector: Tracer | None) -> None:
    """Send all spans of this process to `collector` from now on; None for no collector."""
    global tracer  # noqa: PLW0603 - there is one process, and code that opens spans does not know their collector
    tracer = collector
