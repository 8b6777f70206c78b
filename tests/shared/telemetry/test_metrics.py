"""The metrics of a server: each message counts once, and clients cannot add labels."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from shared.protocol.session.events import Outgoing
from shared.protocol.wire.jsonrpc import Batch, Failure, Message, Notification, Request, Response
from shared.server.dispatch.limits import CallLimits, Limits
from shared.server.run import Run
from shared.server.running import prepare
from shared.server.server import NoSettings
from shared.telemetry import metrics as metrics_module
from shared.telemetry.metrics import BUCKETS, Labels, Meter, Metrics, Series
from tests.shared.transports.http.http_wire import make_server


def call(id: int, tool: Any) -> Request:
    return Request(id, "tools/call", {"name": tool, "arguments": {}})


async def prepared() -> Run[Any]:
    """A run without connections. Its calls need an event loop."""
    return prepare(make_server(), NoSettings(), Limits(), CallLimits(), ())


def counting() -> tuple[Metrics, Meter]:
    """The metrics, and the meter of a connection."""
    metrics = Metrics()
    metrics.attach(asyncio.run(prepared()))
    return metrics, metrics.meter()


def passed(*messages: tuple[Message, Message | None]) -> dict[Labels, Series]:
    """The series after these messages and their answers."""
    metrics, meter = counting()
    for message, answer in messages:
        meter.on_received(message)
        if answer is not None:
            meter.on_sent([Outgoing(answer)])
    return dict(metrics)


def test_a_request_is_counted_by_method_and_tool() -> None:
    series = passed(
        (Request(1, "ping"), Response(1, {})),
        (call(2, "echo"), Response(2, {"content": []})),
        (call(3, "echo"), Response(3, {"content": []})),
        (Notification("notifications/cancelled"), None),
    )
    counted = {labels: one.requests for labels, one in series.items()}
    assert counted == {Labels("ping"): 1, Labels("tools/call", "echo"): 2}
    assert [sum(one.buckets) for one in series.values()] == [1, 2]
    assert not any(one.errors for one in series.values())


def test_errors_are_counted_by_their_cause() -> None:
    series = passed(
        (call(1, "echo"), Response(1, {"isError": True, "content": []})),
        (call(2, "echo"), Failure(2, -32602, "bad")),
        (call(3, "echo"), Failure(3, -32603, "internal error")),
        (call(4, "echo"), Failure(4, -32603, "internal error")),
    )
    assert series[Labels("tools/call", "echo")].errors == Counter(tool=1, client=1, server=2)


def test_unknown_methods_and_tools_are_counted_as_other() -> None:
    many = [(Request(n, f"made/up{n}"), Failure(n, -32601, "unknown")) for n in range(100)]
    calls = [(call(n, f"made-up-{n}"), Failure(n, -32602, "unknown")) for n in range(100, 200)]
    odd = [(call(n, name), Failure(n, -32602, "bad")) for n, name in enumerate([None, 7, ["echo"], {}], 200)]
    series = passed(*many, *calls, *odd)
    assert {labels: one.requests for labels, one in series.items()} == {
        Labels("other"): 100,
        Labels("tools/call", "other"): 104,
    }


def listing(*names: Any) -> Response:
    return Response(1, {"tools": [{"name": name} for name in names]})


def test_a_listed_tool_is_counted_by_its_name() -> None:
    answer = Response(2, {"content": [], "tools": [{"name": "made-up"}]})
    series = passed(
        (call(1, "theirs"), Response(1, {"content": []})),
        (Request(1, "tools/list"), listing("theirs", None, ["odd"])),
        (call(2, "theirs"), answer),
        (call(3, "made-up"), Response(3, {"content": []})),
    )
    counted = {labels.tool: one.requests for labels, one in series.items() if labels.tool}
    assert counted == {"theirs": 1, "other": 2}


def test_the_number_of_listed_tools_with_labels_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_module, "MAX_LISTED_TOOLS", 2)
    names = ("a", "b", "c", "echo")
    calls = [(call(n, name), Response(n, {"content": []})) for n, name in enumerate(names, 2)]
    series = passed((Request(1, "tools/list"), listing("a", "b", "c", "a")), *calls)
    assert {labels.tool for labels in series if labels.tool} == {"a", "b", "echo", "other"}


def test_counts_continue_after_the_server_is_reopened() -> None:
    metrics, meter = counting()
    meter.on_received(call(1, "echo"))
    metrics.attach(asyncio.run(prepared()))
    metrics.meter().on_received(call(1, "echo"))
    assert {labels: one.requests for labels, one in metrics} == {Labels("tools/call", "echo"): 2}


def test_each_request_of_a_batch_is_counted() -> None:
    answers = Batch((Response(1, {}), Response(2, {"isError": True, "content": []})))
    series = passed((Batch((Request(1, "ping"), call(2, "echo"), Notification("notifications/x"))), answers))
    assert {labels: one.requests for labels, one in series.items()} == {
        Labels("ping"): 1,
        Labels("tools/call", "echo"): 1,
    }
    assert series[Labels("tools/call", "echo")].errors == Counter(tool=1)


def test_a_cancelled_request_has_no_time_and_leaves_no_record() -> None:
    metrics, meter = counting()
    meter.on_received(call(1, "wait"))
    meter.on_sent([Outgoing(None, 1)])
    meter.on_sent([Outgoing(Response(1, {}))])
    ((_, series),) = metrics
    assert (series.requests, sum(series.buckets)) == (1, 0)
    assert not meter._in_progress  # visible only in this attribute


def test_a_request_on_a_released_stream_is_still_timed() -> None:
    metrics, meter = counting()
    meter.on_received(call(1, "wait"))
    meter.on_sent([Outgoing(None, 1, retry_ms=10)])
    meter.on_sent([Outgoing(Response(1, {"content": []}))])
    ((_, series),) = metrics
    assert sum(series.buckets) == 1


def test_a_time_is_counted_in_the_bucket_of_its_upper_bound() -> None:
    series = Series(Labels("ping"))
    for seconds in (0.0, BUCKETS[0], BUCKETS[0] + 1e-9, BUCKETS[-1], BUCKETS[-1] + 1):
        series.count_answer(Response(1, {}), seconds)
    assert (series.buckets[0], series.buckets[1], series.buckets[-2], series.buckets[-1]) == (2, 1, 1, 1)
