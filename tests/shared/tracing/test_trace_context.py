"""W3C Trace Context: valid and invalid fields, and the context of outgoing requests."""

from contextvars import copy_context

from shared.tracing.trace_context import TraceContext, continue_trace, current, read_trace_context, trace_meta

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{SPAN}-01"


def test_trace_contexts_are_written_as_they_were_read() -> None:
    context = read_trace_context(PARENT, "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7")
    assert context == TraceContext(TRACE, SPAN, "01", "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7")
    assert context.to_fields() == {"traceparent": PARENT, "tracestate": context.state}
    assert TraceContext(TRACE, SPAN, "00").to_fields() == {"traceparent": f"00-{TRACE}-{SPAN}-00"}


NONE = [
    *(None, 7, "", "t", PARENT.upper(), f"{PARENT}-more", f"{PARENT}\n", f"{PARENT}, {PARENT}"),
    *(f"ff-{TRACE}-{SPAN}-01", f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01"),
    *(f"00-{TRACE}-{SPAN}", f"00-{TRACE}-{SPAN}-0g", f"01-{TRACE}-{SPAN}-01-a\r\nx-other: 1"),
]


def test_invalid_traceparents_count_as_absent() -> None:
    assert [parent for parent in NONE if read_trace_context(parent) is not None] == []
    odd: list[dict[str, object]] = [{}, {"_meta": None}, {"_meta": {}}, {"_meta": ["traceparent"]}]
    odd += [{"_meta": {"traceparent": parent}} for parent in NONE]
    assert [params for params in odd if trace_meta(params) != {}] == []


def test_later_versions_are_read_up_to_the_known_fields() -> None:
    assert read_trace_context(f"cc-{TRACE}-{SPAN}-01-what.else") == TraceContext(TRACE, SPAN)


def test_invalid_tracestates_are_dropped_without_the_traceparent() -> None:
    for state in (7, "a=b\r\nx-other: 1", "ø=1", "a" * 3_000):
        assert read_trace_context(PARENT, state) == TraceContext(TRACE, SPAN)


def test_work_continues_the_trace_of_its_request() -> None:
    def work() -> TraceContext | None:
        continue_trace({"traceparent": PARENT})
        continue_trace({"traceparent": "none"})
        return current.get()

    assert copy_context().run(work) == TraceContext(TRACE, SPAN)
    assert current.get() is None
