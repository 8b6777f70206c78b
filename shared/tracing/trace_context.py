"""W3C Trace Context: which trace the work at hand belongs to, and the span that it is a part of.

A request says so by `traceparent` and `tracestate`, as headers of HTTP or in its `_meta`. What is no such thing
counts as absent, as the recommendation has it (https://www.w3.org/TR/trace-context/). Nothing here needs a library:
log lines name the trace, and requests to other servers go on with it, whether or not anybody collects spans.
"""

import re
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, NamedTuple

TRACEPARENT, TRACESTATE = "traceparent", "tracestate"

_PARENT = re.compile(
    r"(?!ff)(?P<version>[0-9a-f]{2})-(?!0{32})(?P<trace>[0-9a-f]{32})-(?!0{16})(?P<span>[0-9a-f]{16})"
    r"-(?P<flags>[0-9a-f]{2})(?P<more>-[!-~]*)?"
)
_STATE = re.compile(r"[ -~\t]{1,2048}")
"""Others may be dropped whole; 512 characters have to go on."""


class TraceContext(NamedTuple):
    """A span, as others are told of it."""

    trace_id: str
    """32 digits."""
    span_id: str
    """16 digits."""
    flags: str = "01"
    """Two digits, of which the last bit says whether the trace is recorded."""
    state: str = ""
    """What those who record it want to be told again; empty for nothing."""
    is_ours: bool = False
    """Whether it is a span of this process."""

    @property
    def parent(self) -> str:
        """The `traceparent` of what is done for it."""
        return f"00-{self.trace_id}-{self.span_id}-{self.flags}"

    def carried(self) -> dict[str, str]:
        """What a request says that is made for it: the keys are those of headers, and of `_meta` as well."""
        state = {TRACESTATE: self.state} if self.state else {}
        return {TRACEPARENT: self.parent, **state}


current: ContextVar[TraceContext | None] = ContextVar("trace_context", default=None)
"""The span that the work at hand is a part of, where anybody has named one."""


def read_trace_context(parent: object, state: object = None) -> TraceContext | None:
    """The span that a `traceparent` names, with the `tracestate` beside it; None where it names none."""
    found = _PARENT.fullmatch(parent) if isinstance(parent, str) else None
    if found is None or (found["version"] == "00" and found["more"]):
        return None
    told = state.strip() if isinstance(state, str) and _STATE.fullmatch(state) else ""
    return TraceContext(found["trace"], found["span"], found["flags"], told)


def follow(said: Mapping[str, Any]) -> None:
    """Has the work at hand, which is a task, be a part of the span that the `_meta` of a request names, if any."""
    found = read_trace_context(said.get(TRACEPARENT), said.get(TRACESTATE))
    if found is not None:
        current.set(found)


def trace_meta(params: Mapping[str, Any]) -> dict[str, str]:
    """What the `_meta` in these params says of a trace, as headers say it."""
    meta = params.get("_meta")
    if not isinstance(meta, dict) or TRACEPARENT not in meta:
        return {}
    found = read_trace_context(meta[TRACEPARENT], meta.get(TRACESTATE))
    return {} if found is None else found.carried()
