"""W3C Trace Context: the trace to which the current work belongs, and its parent span.

A request carries both in `traceparent` and `tracestate`, which are HTTP headers or fields of its `_meta`. Invalid
values are ignored, as the recommendation requires (https://www.w3.org/TR/trace-context/). Log lines contain the trace
id, and requests to other servers continue the trace, even without a collector of spans.
"""

import re
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, NamedTuple

TRACEPARENT, TRACESTATE = "traceparent", "tracestate"

_PARENT = (
    r"(?!ff)(?P<version>[0-9a-f]{2})-(?!0{32})(?P<trace>[0-9a-f]{32})-(?!0{16})(?P<span>[0-9a-f]{16})"
    r"-(?P<flags>[0-9a-f]{2})(?P<more>-[!-~]*)?"
)
_STATE = r"[ -~\t]{1,2048}"
"""A `tracestate`. The recommendation requires at least 512 characters to be passed on; longer values are dropped."""


class TraceContext(NamedTuple):
    """A span, in the form sent to other programs."""

    trace_id: str
    """32 hexadecimal digits."""
    span_id: str
    """16 hexadecimal digits."""
    flags: str = "01"
    """Two hexadecimal digits; the lowest bit is set if the trace is recorded."""
    state: str = ""
    """The `tracestate`: data of tracing systems, which is passed on unchanged. Empty if there is none."""
    is_ours: bool = False
    """True for a span of this process, False for one that came with a request."""

    @property
    def parent(self) -> str:
        """The `traceparent` of requests made within this span."""
        return f"00-{self.trace_id}-{self.span_id}-{self.flags}"

    def to_fields(self) -> dict[str, str]:
        """Return the fields for a request made within this span, which are the same as headers and in `_meta`."""
        state = {TRACESTATE: self.state} if self.state else {}
        return {TRACEPARENT: self.parent, **state}


current: ContextVar[TraceContext | None] = ContextVar("trace_context", default=None)
"""The span to which the current work belongs, if any."""


def read_trace_context(parent: object, state: object = None) -> TraceContext | None:
    """Return the span in a `traceparent` and the `tracestate` that came with it; None if `parent` is invalid."""
    match = re.fullmatch(_PARENT, parent) if isinstance(parent, str) else None
    if match is None or (match["version"] == "00" and match["more"]):
        return None
    trace_state = state.strip() if isinstance(state, str) and re.fullmatch(_STATE, state) else ""
    return TraceContext(match["trace"], match["span"], match["flags"], trace_state)


def continue_trace(meta: Mapping[str, Any]) -> None:
    """Make the current task part of the span in the `_meta` of a request, if it has one."""
    context = read_trace_context(meta.get(TRACEPARENT), meta.get(TRACESTATE))
    if context is not None:
        current.set(context)


def trace_meta(params: Mapping[str, Any]) -> dict[str, str]:
    """Return the trace fields in the `_meta` of `params`, under the names of the headers; empty if there are none."""
    meta = params.get("_meta")
    if not isinstance(meta, dict) or TRACEPARENT not in meta:
        return {}
    context = read_trace_context(meta[TRACEPARENT], meta.get(TRACESTATE))
    return {} if context is None else context.to_fields()
