"""A receiver of OTLP over HTTP, like a collector: it accepts spans and counts in protobuf, by the schema of
OpenTelemetry, and stores them.
"""

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from aiohttp import web
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span as WireSpan
from opentelemetry.proto.trace.v1.trace_pb2 import Status

MEDIA_TYPE = "application/x-protobuf"
PATIENCE = 30.0


class Seen(NamedTuple):
    """A received span."""

    name: str
    kind: str
    service: str
    trace: str
    id: str
    parent: str
    state: str
    attributes: dict[str, Any]
    has_failed: bool
    message: str


class Receiver:
    """The received spans and counts."""

    def __init__(self) -> None:
        self.url = ""
        self.headers: list[dict[str, str]] = []
        self.spans: list[Seen] = []
        self.counts: dict[tuple[str, tuple[tuple[str, Any], ...]], Any] = {}
        """The newest value of each, by its name and labels; of a histogram how many were counted."""
        self._came = asyncio.Event()

    async def until(self, is_there: Callable[[], object]) -> None:
        """Waits until the received data meet a condition."""
        async with asyncio.timeout(PATIENCE):
            while not is_there():
                self._came.clear()
                await self._came.wait()

    async def span(self, name: str, **attributes: Any) -> Seen:
        """Waits for the span of that name; returns it."""

        def fitting() -> list[Seen]:
            expected = attributes.items()
            return [one for one in self.spans if one.name == name and expected <= one.attributes.items()]

        await self.until(fitting)
        (one,) = fitting()
        return one

    def count(self, name: str, **labels: Any) -> Any:
        """Returns a count; None if it was not received."""
        return self.counts.get((name, tuple(sorted(labels.items()))))

    async def _body(self, request: web.Request) -> bytes:
        assert request.content_type == MEDIA_TYPE
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        # aiohttp decompresses a body by its header.
        body = await request.read()
        return gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body

    async def traces(self, request: web.Request) -> web.Response:
        sent = ExportTraceServiceRequest.FromString(await self._body(request))
        for group in sent.resource_spans:
            service = _values(group.resource.attributes)["service.name"]
            for scope in group.scope_spans:
                self.spans += [_seen(one, service) for one in scope.spans]
        self._came.set()
        return web.Response(body=ExportTraceServiceResponse().SerializeToString(), content_type=MEDIA_TYPE)

    async def metrics(self, request: web.Request) -> web.Response:
        sent = ExportMetricsServiceRequest.FromString(await self._body(request))
        for group in sent.resource_metrics:
            for metric in (one for scope in group.scope_metrics for one in scope.metrics):
                kind = metric.WhichOneof("data")
                for point in getattr(metric, kind).data_points:
                    labels = tuple(sorted(_values(point.attributes).items()))
                    value = point.count if kind == "histogram" else getattr(point, point.WhichOneof("value"))
                    self.counts[metric.name, labels] = value
        self._came.set()
        return web.Response(body=ExportMetricsServiceResponse().SerializeToString(), content_type=MEDIA_TYPE)


def _seen(one: WireSpan, service: str) -> Seen:
    return Seen(
        name=one.name,
        kind=WireSpan.SpanKind.Name(one.kind).removeprefix("SPAN_KIND_").lower(),
        service=service,
        trace=one.trace_id.hex(),
        id=one.span_id.hex(),
        parent=one.parent_span_id.hex(),
        state=one.trace_state,
        attributes=_values(one.attributes),
        has_failed=one.status.code == Status.STATUS_CODE_ERROR,
        message=one.status.message,
    )


def _values(attributes: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """Runs a receiver on a free port; yields it."""
    receiver, app = Receiver(), web.Application()
    app.router.add_post("/v1/traces", receiver.traces)
    app.router.add_post("/v1/metrics", receiver.metrics)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        receiver.url = f"http://{host}:{port}"
        yield receiver
    finally:
        await runner.cleanup()
