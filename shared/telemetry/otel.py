"""Sends spans and counts to an OpenTelemetry collector, by OTLP over HTTP.

Only this module uses the OpenTelemetry SDK, and it is imported only if an operator configures a collector. Other code
creates spans with `shared.tracing.spans`. The SDK has bounded queues and sends in threads of its own, so that a slow
or missing collector causes the loss of spans, but delays no request. The SDK's environment variables apply, such as
OTEL_EXPORTER_OTLP_HEADERS, OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER and OTEL_METRIC_EXPORT_INTERVAL.
"""

import logging
import os
import threading
import time
from asyncio import CancelledError
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import Token
from functools import partial
from types import TracebackType
from typing import Any
from uuid import uuid4

from opentelemetry import context as ambient
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult

from ..errors import InputRequired, RpcError
from ..tracing.spans import Attributes, Kind, set_tracer
from ..tracing.trace_context import TraceContext, current
from .measures import DURATION, MEASURES, REQUEST_LABELS, Measure
from .metrics import BUCKETS, Figures, Labels, Metrics
from .trace import redact

log = logging.getLogger("shared.otel")

CLOSE_SECONDS = 3.0
"""Seconds that the program waits at its end until the last data is sent."""
_SCOPE = "mcp-server-bundle"
_KINDS = {"internal": trace.SpanKind.INTERNAL, "client": trace.SpanKind.CLIENT, "server": trace.SpanKind.SERVER}
_MAX_TEXT_LENGTH = 500
"""Maximum length, in characters, of the text of an error."""


class Telemetry:
    """Sends the spans and metrics of one program, until `close`."""

    def __init__(self, url: str, service: str, version: str) -> None:
        """`url` is the URL of the collector, without `/v1/traces`. `service` is the name of the service, unless an
        environment variable of the SDK sets another. Raises ValueError for invalid variables of the SDK."""
        resource = Resource.create({"service.version": version, "service.instance.id": str(uuid4())})
        is_named = "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
        # The operator's environment variables have priority.
        if not (is_named or os.environ.get("OTEL_SERVICE_NAME")):
            resource = resource.merge(Resource({"service.name": service}))
        base = url.rstrip("/")
        outage = _Outage(url)
        exporter = _SpanExporter(outage, endpoint=f"{base}/v1/traces")
        # With `shutdown_on_exit`, the SDK would wait at exit for an unavailable collector. `close` waits for a
        # limited time.
        self._tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._tracers.add_span_processor(BatchSpanProcessor(exporter))
        reader = PeriodicExportingMetricReader(_MetricExporter(outage, endpoint=f"{base}/v1/metrics"))
        self._meters = MeterProvider([reader], resource, shutdown_on_exit=False)
        self._meter = self._meters.get_meter(_SCOPE, version)
        name, text = DURATION
        self._duration = self._meter.create_histogram(
            name, "s", text, explicit_bucket_boundaries_advisory=list(BUCKETS)
        )
        # The provider is not made the global one, since the code of a server may have set up another.
        tracer = self._tracers.get_tracer(_SCOPE, version)
        set_tracer(partial(_OpenSpan, tracer))

    def watch(self, metrics: Mapping[str, Metrics], figures: Callable[[], Sequence[Figures]]) -> None:
        """Send the measures of the servers, and the duration of each answer. `metrics` are those of the servers, by
        name. `figures` returns the current figures of all servers; it is called in a thread."""
        for server, server_metrics in metrics.items():
            server_metrics.on_answered = partial(self._record_duration, server)
        for measure in MEASURES:
            create: Any = (
                self._meter.create_observable_counter if measure.is_counter else self._meter.create_observable_gauge
            )
            create(measure.name, [partial(_observe, measure, figures)], description=measure.description)

    def close(self) -> None:
        """Send the remaining data, within `CLOSE_SECONDS`."""
        set_tracer(None)
        # The SDK may wait for the collector for any time, so it is shut down in daemon threads, which end with the
        # program.
        threads = [
            threading.Thread(target=provider.shutdown, daemon=True) for provider in (self._tracers, self._meters)
        ]
        until = time.monotonic() + CLOSE_SECONDS
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _record_duration(self, server: str, labels: Labels, seconds: float) -> None:
        self._duration.record(seconds, dict(zip(REQUEST_LABELS, (server, *labels), strict=True)))


def _observe(
    measure: Measure, figures: Callable[[], Sequence[Figures]], _options: CallbackOptions
) -> Iterable[Observation]:
    for entry in figures():
        for labels, value in measure.samples(entry):
            yield Observation(value, dict(zip(measure.labels, labels, strict=True)))


# Spans


class _OpenSpan:
    """A `Span` of `shared.tracing.spans` for the duration of a block."""

    def __init__(self, tracer: trace.Tracer, name: str, attributes: Attributes, kind: Kind) -> None:
        self._tracer = tracer
        self._arguments = name, attributes, kind
        self._has_failed = self._is_dropped = False
        self._span: trace.Span
        self._tokens: tuple[Token[TraceContext | None], Token[ambient.Context]]

    def __enter__(self) -> "_OpenSpan":
        name, attributes, kind = self._arguments
        self._span = self._tracer.start_span(name, _parent_context(current.get()), _KINDS[kind], dict(attributes))
        span_context = self._span.get_span_context()
        state = span_context.trace_state.to_header()
        ids = trace.format_trace_id(span_context.trace_id), trace.format_span_id(span_context.span_id)
        trace_context = TraceContext(*ids, f"{span_context.trace_flags:02x}", state, is_ours=True)
        # Also set the SDK's own context, so that spans of instrumented libraries are within this one.
        self._tokens = current.set(trace_context), ambient.attach(trace.set_span_in_context(self._span))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        our_token, sdk_token = self._tokens
        with suppress(ValueError):  # raised if an abandoned coroutine is closed in another context
            current.reset(our_token)
            ambient.detach(sdk_token)
        if self._is_dropped:  # the SDK does not send a span that never ends
            return
        if error is not None and not self._has_failed and not isinstance(error, InputRequired):
            self.fail(_error_type(error))
        self._span.end()

    def note(self, name: str, value: str | int | float | bool) -> None:
        self._span.set_attribute(name, value)

    def fail(self, kind: str, message: str = "") -> None:
        self._has_failed = True
        self._span.set_attribute("error.type", kind)
        # The text may contain secrets, which readers of traces must not see.
        self._span.set_status(trace.StatusCode.ERROR, redact(message[:_MAX_TEXT_LENGTH]) or None)

    def drop(self) -> None:
        self._is_dropped = True


def _parent_context(outer: TraceContext | None) -> ambient.Context:
    """Return the SDK's context for a span within `outer`, or for a first span if that is None."""
    if outer is None:
        return ambient.Context()
    span_context = trace.SpanContext(
        int(outer.trace_id, 16),
        int(outer.span_id, 16),
        is_remote=not outer.is_ours,
        trace_flags=trace.TraceFlags(int(outer.flags, 16)),
        trace_state=trace.TraceState.from_header([outer.state] if outer.state else []),
    )
    return trace.set_span_in_context(trace.NonRecordingSpan(span_context), ambient.Context())


def _error_type(error: BaseException) -> str:
    """Return the attribute `error.type`: "cancelled", the code of the error, or the name of its class."""
    if isinstance(error, CancelledError):
        return "cancelled"
    code = getattr(error, "code", None)
    if isinstance(error, RpcError) or isinstance(code, str):
        return str(code)
    return type(error).__qualname__


# Failed deliveries


class _Outage(logging.Handler):
    """Logs once when the collector can't be reached any more, and once when it can be reached again. It is the
    handler of the SDK's own log records about failed attempts."""

    def __init__(self, url: str) -> None:
        super().__init__(logging.WARNING)
        self._url = redact(url)
        self._is_unavailable = False
        exporter_log = logging.getLogger("opentelemetry.exporter")
        # The SDK logs each failed attempt, which is several per second while the collector is unavailable.
        exporter_log.handlers, exporter_log.propagate = [self], False
        # These records report that the queue is full, which is a consequence of the outage.
        queue_log = logging.getLogger("opentelemetry.sdk._shared_internal")
        queue_log.addFilter(lambda _record: not self._is_unavailable)

    def emit(self, record: logging.LogRecord) -> None:
        """Handle the log record of a failed attempt."""
        if not self._is_unavailable:
            self._is_unavailable = True
            reason = redact(record.getMessage()[:_MAX_TEXT_LENGTH])
            log.warning("%s does not accept spans and metrics; continuing without them: %s", self._url, reason)

    def on_delivery(self) -> None:
        """Record that the collector has accepted data."""
        if self._is_unavailable:
            self._is_unavailable = False
            log.warning("%s accepts spans and metrics again", self._url)


class _SpanExporter(OTLPSpanExporter):
    def __init__(self, outage: _Outage, endpoint: str) -> None:
        super().__init__(endpoint=endpoint)
        self._outage = outage

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = super().export(spans)
        if result is SpanExportResult.SUCCESS:
            self._outage.on_delivery()
        return result


class _MetricExporter(OTLPMetricExporter):
    def __init__(self, outage: _Outage, endpoint: str) -> None:
        super().__init__(endpoint=endpoint)
        self._outage = outage

    def export(
        self, metrics_data: MetricsData, timeout_millis: float | None = 10_000, **kwargs: Any
    ) -> MetricExportResult:
        result = super().export(metrics_data, timeout_millis, **kwargs)
        if result is MetricExportResult.SUCCESS:
            self._outage.on_delivery()
        return result
