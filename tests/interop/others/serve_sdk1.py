"""A server of the official Python SDK 1.x on a WebSocket, at /mcp, and over HTTP+SSE, at /sse.

Runs in the environment of that peer; tells its port.
"""

import socket

import uvicorn
from mcp.server.fastmcp import Context, FastMCP
from mcp.server.websocket import websocket_server
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.routing import Mount, WebSocketRoute
from starlette.websockets import WebSocket

app = FastMCP("official")


class Colour(BaseModel):
    """A form."""

    colour: str


@app.tool()
async def add(a: int, b: int) -> int:
    return a + b


@app.tool()
async def count(context: Context, to: int) -> str:
    for step in range(to):
        await context.report_progress(step + 1, to)
    return "done"


@app.tool()
async def favourite(context: Context) -> str:
    answer = await context.elicit("Which one?", Colour)
    return answer.data.colour if answer.action == "accept" else answer.action


@app.resource("memo://one")
def memo() -> str:
    return "ø" * 300_000


async def serve(web_socket: WebSocket) -> None:
    server = app._mcp_server
    async with websocket_server(web_socket.scope, web_socket.receive, web_socket.send) as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        routes = [WebSocketRoute("/mcp", serve), Mount("/", app.sse_app())]
        config = uvicorn.Config(Starlette(routes=routes), log_level="error")
        uvicorn.Server(config).run([listener])
