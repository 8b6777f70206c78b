"""A span for each request that a handler is asked, named as OpenTelemetry's semantic conventions for MCP have it.

    https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp/

Where a call is made of another one, as by the door to many servers, the inner one is a span within the outer one.
"""

import asyncio
import sys
from typing import Any

from ..errors import CallTimeout, InputRequired, RpcError, ToolError
from ..protocol.methods import OTHERWISE, Method
from ..protocol.session.events import Call
from ..server.dispatch.context import Context
from ..server.extension import Extension
from ..server.features import Handler
from ..server.run import Run
from ..tracing.spans import Kind, Span, span
from ..tracing.trace_context import current
from .audit import arrival

_LONGEST = 128
"""Characters of a name that a client has sent."""


def traced(server: str, *, over_http: bool) -> Extension[Any]:
    """The extension that has a span of each request to the server of that name. It is around all others, so that what
    they write down has the trace."""
    transport = {"network.transport": "tcp", "network.protocol.name": "http"}
    fixed = {"mcp.server.name": server, **(transport if over_http else {"network.transport": "pipe"})}

    def around(method: Method, handler: Handler) -> Handler:
        async def handled(running: Run[Any], context: Context[Any], params: Any) -> Any:
            call = context.call
            # One handler has all methods that only servers behind a gateway know.
            named = call.method.name[:_LONGEST] if method.name == OTHERWISE else method.name
            name, said = _said_of(call, named, params)
            outer = current.get()
            kind: Kind = "internal" if outer is not None and outer.is_ours else "server"
            with span(name, {**fixed, **said}, kind) as one:
                # What `handler` gives, once the span has been told what became of it.
                result = None
                try:
                    result = await handler(running, context, params)
                    return result
                finally:
                    error = sys.exc_info()[1] if result is None else None
                    if error is not None:
                        _tell(one, error, running, context.call)
                    elif isinstance(result, dict) and result.get("isError"):
                        one.fail("tool_error")

        return handled

    extension = Extension[Any]("traces", around=around)
    extension.outermost = 3
    return extension


def _tell(one: Span, error: BaseException, running: Run[Any], call: Call) -> None:
    told = running.server.told(error)
    match told:
        case InputRequired():
            one.note("mcp.result.type", "input_required")
        case RpcError():
            one.note("rpc.response.status_code", str(told.code))
            one.fail(str(told.code), told.message)
        case ToolError():
            one.fail("tool_error")
        case CallTimeout():
            one.fail("timeout")
        case None if isinstance(error, asyncio.CancelledError):
            # Nobody has cancelled it where it is still to be answered: its time was up.
            is_over = call.is_over if call.link is not None else call.outlet is None
            one.fail("cancelled" if is_over else "timeout")
        case _:
            one.fail(type(told or error).__qualname__)


def _said_of(call: Call, method: str, params: Any) -> tuple[str, dict[str, str]]:
    """The name of the span of a call, and what is known of it at its beginning. URIs may hold what nobody else is to
    know, and are left out."""
    said = {"mcp.method.name": method, "jsonrpc.request.id": str(call.id)[:_LONGEST]}
    said["mcp.protocol.version"] = call.peer.speaks
    came = arrival.get()
    if came is not None and came.session is not None:
        said["mcp.session.id"] = came.session
    elif call.peer.session is not None:
        said["mcp.session.id"] = f"#{call.peer.session}"
    target = getattr(params, "name", None)
    if method == "tools/call" and isinstance(target, str):
        said |= {"gen_ai.tool.name": target[:_LONGEST], "gen_ai.operation.name": "execute_tool"}
    elif method == "prompts/get" and isinstance(target, str):
        said["gen_ai.prompt.name"] = target[:_LONGEST]
    else:
        return method, said
    return f"{method} {target[:_LONGEST]}", said
