"""The sample server on the official Python SDK 2.x, as its documentation would have it written.

python serve_sdk2.py stdio | streamable-http PORT | sse PORT
"""

import sys
from typing import Annotated, Any

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp_types import Completion, CreateMessageResult, ListRootsResult, SamplingMessage, TextContent
from pydantic import BaseModel

LONG = "ø" * 300_000
STATELESS = "2026-07-28"
TONES = ["warm", "witty", "cool"]

app = MCPServer("sample", version="1.0", instructions="For tests only.", log_level="ERROR")
stopped = anyio.Event()


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
    raise ToolError("it broke")


@app.tool()
async def count(context: Context[Any, Any], to: int) -> str:
    """Count, and report each step."""
    for step in range(to):
        await context.report_progress(step + 1, to)
    return "done"


@app.tool()
async def hold(context: Context[Any, Any]) -> str:
    """Report once, and wait to be cancelled."""
    await context.report_progress(1)
    try:
        await anyio.sleep_forever()
    finally:
        stopped.set()


@app.tool()
async def when_stopped() -> str:
    """Wait until the other call has been cancelled."""
    await stopped.wait()
    return "stopped"


@app.tool()
async def chatter(context: Context[Any, Any]) -> str:
    """Say something in the log."""
    await context.log("warning", "it rains", logger_name="sample")
    return "done"


async def ask_place() -> Elicit[Place]:
    return Elicit("Where were you born?", Place)


@app.tool()
async def birthplace(place: Annotated[Place, Resolve(ask_place)]) -> str:
    """Ask for a town."""
    return place.city


async def ask_model() -> Sample:
    said = TextContent(type="text", text="What rhymes with snake?")
    return Sample([SamplingMessage(role="user", content=said)], max_tokens=10)


@app.tool()
async def rhyme(said: Annotated[CreateMessageResult, Resolve(ask_model)]) -> str:
    """Ask the model."""
    return said.content.text if isinstance(said.content, TextContent) else said.content.type


async def ask_roots() -> ListRoots:
    return ListRoots()


@app.tool()
async def whereabouts(found: Annotated[ListRootsResult, Resolve(ask_roots)]) -> str:
    """Ask for the roots."""
    return ", ".join(str(root.uri) for root in found.roots)


@app.tool()
async def touch(context: Context[Any, Any]) -> str:
    """Tell that the memo and the list of tools have changed."""
    await context.notify_resource_updated("memo://one")
    await context.notify_tools_changed()
    if context.protocol_version != STATELESS:  # those reach none that shook hands
        await context.session.send_tool_list_changed()
    return "done"


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
async def complete(_reference: Any, argument: Any, _context: Any) -> Completion:
    return Completion(values=[tone for tone in TONES if tone.startswith(argument.value)])


if __name__ == "__main__":
    transport, *ports = sys.argv[1:]
    port = {"port": int(ports[0])} if ports else {}
    app.run(transport, **port)
