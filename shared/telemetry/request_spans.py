"""A span for each request to a handler, named according to OpenTelemetry's semantic conventions for MCP.

https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp/

If one call makes another, as in a gateway, the span of the inner call is within that of the outer one.
"""

import asyncio
import sys
from functools import partial
from typing import Any

from ..errors import CallTimeout, InputRequired, RpcError, ToolError
from ..protocol.methods import FALLBACK, Method
from ..protocol.session.events import Call
from ..server.dispatch.context import Context
from ..server.extension import Extension
from ..server.features import AtOnce, Handler
from ..server.run import Run
from ..tracing.spans import Kind, Span, attempt, span
from ..tracing.trace_context import current
from .arrival import arrival

_MAX_LENGTH = 128
"""Maximum length, in characters, of a name that a client has sent."""


def trace_calls(server: str, *, over_http: bool) -> Extension[Any]:
    """Return the extension that creates a span for each request to the server called `server`. It wraps all other
    extensions, so that what they log contains the trace id."""
    transport = {"network.transport": "tcp", "network.protocol.name": "http"}
    common = {"mcp.server.name": server, **(transport if over_http else {"network.transport": "pipe"})}

    def describe(method: Method, call: Call, params: Any) -> tuple[str, dict[str, str], Kind]:
        # One fallback handler serves all methods that only servers behind a gateway have, so use the name in the
        # request.
        named = call.method.name[:_MAX_LENGTH] if method.name == FALLBACK else method.name
        name, attributes = _describe(call, named, params)
        outer = current.get()
        return name, {**common, **attributes}, "internal" if outer is not None and outer.is_ours else "server"

    def around(method: Method, handler: Handler) -> Handler:
        async def handle(run: Run[Any], context: Context[Any], params: Any) -> Any:
            with span(*describe(method, context.call, params)) as request_span:
                result = None
                try:
                    result = await handler(run, context, params)
                    return result
                finally:
                    error = sys.exc_info()[1] if result is None else None
                    if error is not None:
                        _record_error(request_span, error, run, context.call)
                    elif isinstance(result, dict) and result.get("isError"):
                        request_span.fail("tool_error")

        return handle

    def around_at_once(method: Method, handler: AtOnce) -> AtOnce:
        def handle(run: Run[Any], context: Context[Any], params: Any) -> dict[str, Any] | None:
            name, attributes, kind = describe(method, context.call, params)
            return attempt(name, attributes, partial(handler, run, context, params), kind)

        return handle

    extension = Extension[Any]("traces", around=around)
    extension.around_at_once = around_at_once
    extension.rank = 3
    return extension


def _record_error(request_span: Span, error: BaseException, run: Run[Any], call: Call) -> None:
    answer = run.server.error_for_client(error)
    match answer:
        case InputRequired():
            request_span.note("mcp.result.type", "input_required")
        case RpcError():
            request_span.note("rpc.response.status_code", str(answer.code))
            request_span.fail(str(answer.code), answer.message)
        case ToolError():
            request_span.fail("tool_error")
        case CallTimeout():
            request_span.fail("timeout")
        case None if isinstance(error, asyncio.CancelledError):
            # If the call has not been answered, it was cancelled because it exceeded its time limit, not by the
            # client.
            is_over = call.is_over if call.link is not None else call.outlet is None
            request_span.fail("cancelled" if is_over else "timeout")
        case _:
            request_span.fail(type(answer or error).__qualname__)


def _describe(call: Call, method: str, params: Any) -> tuple[str, dict[str, str]]:
    """Return the name of the span of a call, and the attributes that are known at its start."""
    attributes = {"mcp.method.name": method, "jsonrpc.request.id": str(call.id)[:_MAX_LENGTH]}
    attributes["mcp.protocol.version"] = call.peer.version_date
    http_request = arrival.get()
    if http_request is not None and http_request.session is not None:
        attributes["mcp.session.id"] = http_request.session
    elif call.peer.session is not None:
        attributes["mcp.session.id"] = f"#{call.peer.session}"
    # URIs are left out, since they may contain private data.
    target = getattr(params, "name", None)
    if method == "tools/call" and isinstance(target, str):
        attributes |= {"gen_ai.tool.name": target[:_MAX_LENGTH], "gen_ai.operation.name": "execute_tool"}
    elif method == "prompts/get" and isinstance(target, str):
        attributes["gen_ai.prompt.name"] = target[:_MAX_LENGTH]
    else:
        return method, attributes
    return f"{method} {target[:_MAX_LENGTH]}", attributes
