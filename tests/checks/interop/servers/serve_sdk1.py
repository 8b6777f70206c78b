"""The sample server on the official Python SDK 1.x, as its documentation would have it written.

python serve_sdk1.py stdio | streamable-http PORT | sse PORT | websocket PORT

Runs in an environment of its own, where nothing of this project is but this file.
"""

import asyncio
import sys
from typing import Any

import uvicorn
from mcp import types
from mcp.server.fastmcp import Context, FastMCP
from mcp.server.websocket import websocket_server
from pydantic import AnyUrl, BaseModel
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket

LONG = "ø" * 300_000
TONES = ["warm", "witty", "cool"]

app = FastMCP("sample", instructions="For tests only.", log_level="ERROR")
stopped = asyncio.Event()


class Place(BaseModel):
    """A form."""

    city: str


@app.tool()
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@app.tool()
async def fail() -> str:
    """Fail."""
    raise ValueError("it broke")


@app.tool()
async def count(context: Context, to: int) -> str:
    """Count, and report each step."""
    for step in range(to):
        await context.report_progress(step + 1, to)
    return "done"


@app.tool()
async def hold(context: Context) -> str:
    """Report once, and wait to be cancelled."""
    await context.report_progress(1)
    try:
        await asyncio.Event().wait()
    finally:
        stopped.set()
    return "never"


@app.tool()
async def when_stopped() -> str:
    """Wait until the other call has been cancelled."""
    await stopped.wait()
    return "stopped"


@app.tool()
async def chatter(context: Context) -> str:
    """Say something in the log."""
    await context.log("warning", "it rains", logger_name="sample")
    return "done"


@app.tool()
async def birthplace(context: Context) -> str:
    """Ask for a town."""
    answer = await context.elicit("Where were you born?", Place)
    return answer.data.city if answer.action == "accept" else answer.action


@app.tool()
async def rhyme(context: Context) -> str:
    """Ask the model."""
    said = types.TextContent(type="text", text="What rhymes with snake?")
    asked = [types.SamplingMessage(role="user", content=said)]
    answer = await context.session.create_message(asked, max_tokens=10, related_request_id=context.request_id)
    return answer.content.text if isinstance(answer.content, types.TextContent) else answer.content.type


@app.tool()
async def whereabouts(context: Context) -> str:
    """Ask for the roots."""
    return ", ".join(str(root.uri) for root in (await context.session.list_roots()).roots)


@app.tool()
async def touch(context: Context) -> str:
    """Tell that the memo and the list of tools have changed."""
    await context.session.send_resource_updated(AnyUrl("memo://one"))
    await context.session.send_tool_list_changed()
    return "done"


@app._mcp_server.subscribe_resource()
async def subscribe(_uri: AnyUrl) -> None: ...


@app._mcp_server.unsubscribe_resource()
async def unsubscribe(_uri: AnyUrl) -> None: ...


@app.resource("memo://one")
def one() -> str:
    """A long text."""
    return LONG


@app.resource("memo://bytes", mime_type="application/octet-stream")
def some_bytes() -> bytes:
    """A few bytes."""
    return b"\x00\xff\x10"


@app.resource("memo://about/{name}")
def about(name: str) -> str:
    """What is known of somebody."""
    return f"all about {name}"


@app.prompt()
def greet(name: str, tone: str = "warm") -> str:
    """Greet somebody."""
    return f"Say hello to {name}, in a {tone} way."


@app.completion()
async def complete(_reference: Any, argument: Any, _context: Any) -> types.Completion:
    return types.Completion(values=[tone for tone in TONES if tone.startswith(argument.value)])


async def serve(web_socket: WebSocket) -> None:
    server = app._mcp_server
    async with websocket_server(web_socket.scope, web_socket.receive, web_socket.send) as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    transport, *ports = sys.argv[1:]
    if ports:
        app.settings.port = int(ports[0])
    if transport == "websocket":
        routes = [WebSocketRoute("/mcp", serve)]
        uvicorn.run(Starlette(routes=routes), port=app.settings.port, log_level="error")
    else:
        app.run(transport)
