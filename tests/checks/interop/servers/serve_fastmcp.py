"""The sample server on FastMCP 4, as its documentation would have it written.

python serve_fastmcp.py stdio | http PORT | sse PORT

Runs in an environment of its own, where nothing of this project is but this file.
"""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fastmcp import Context, FastMCP
from fastmcp.server.providers.skills import SkillsDirectoryProvider
from fastmcp.skills.extension import SkillsExtension
from mcp_types import (
    Completion,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    SamplingMessage,
    TextContent,
    ToolListChangedNotification,
)
from pydantic import BaseModel

LONG = "ø" * 300_000
STATELESS = "2026-07-28"
TONES = ["warm", "witty", "cool"]

app = FastMCP("sample", instructions="For tests only.", version="1.0")
stopped = asyncio.Event()


class Place(BaseModel):
    """A form."""

    city: str


FORM = ElicitRequest(
    params=ElicitRequestFormParams(message="Where were you born?", requested_schema=Place.model_json_schema())
)
RHYME = TextContent(type="text", text="What rhymes with snake?")
QUESTION = CreateMessageRequest(
    params=CreateMessageRequestParams(messages=[SamplingMessage(role="user", content=RHYME)], max_tokens=10)
)


@app.tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@app.tool
async def fail() -> str:
    """Fail."""
    raise ValueError("it broke")


@app.tool
async def count(context: Context, to: int) -> str:
    """Count, and report each step."""
    for step in range(to):
        await context.report_progress(step + 1, to)
    return "done"


@app.tool
async def hold(context: Context) -> str:
    """Report once, and wait to be cancelled."""
    await context.report_progress(1)
    try:
        await asyncio.Event().wait()
    finally:
        stopped.set()
    return "never"


@app.tool
async def when_stopped() -> str:
    """Wait until the other call has been cancelled."""
    await stopped.wait()
    return "stopped"


@app.tool
async def chatter(context: Context) -> str:
    """Say something in the log."""
    await context.log("it rains", "warning", logger_name="sample")
    return "done"


@app.tool
async def birthplace(context: Context) -> str | InputRequiredResult:
    """Ask for a town."""
    if context.request_context.protocol_version == STATELESS:
        return asked(context, FORM, lambda answer: answer.content["city"])
    answer = await context.elicit("Where were you born?", Place)
    return answer.data.city if answer.action == "accept" else answer.action


@app.tool
async def rhyme(context: Context) -> str | InputRequiredResult:
    """Ask the model."""
    if context.request_context.protocol_version == STATELESS:
        return asked(context, QUESTION, lambda answer: answer.content.text)
    answer = await context.session.create_message(QUESTION.params.messages, max_tokens=10)
    return answer.content.text if isinstance(answer.content, TextContent) else answer.content.type


@app.tool
async def whereabouts(context: Context) -> str | InputRequiredResult:
    """Ask for the roots."""
    if context.request_context.protocol_version == STATELESS:
        return asked(context, ListRootsRequest(), named)
    return named(await context.session.list_roots())


def named(found: ListRootsResult) -> str:
    return ", ".join(str(root.uri) for root in found.roots)


def asked(context: Context, question: Any, answered: Callable[[Any], str]) -> str | InputRequiredResult:
    """What a client without a handshake is told: the question first, and when it asks again with the answer, that."""
    if context.input_responses is None:
        return InputRequiredResult(input_requests={"question": question})
    return answered(context.input_responses["question"])


@app.tool
async def touch(context: Context) -> str:
    """Tell that the list of tools has changed."""
    await context.send_notification(ToolListChangedNotification())
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


@app.prompt
def greet(name: str, tone: str = "warm") -> str:
    """Greet somebody."""
    return f"Say hello to {name}, in a {tone} way."


@app.completion
async def complete(_reference: Any, argument: Any, _context: Any) -> Completion:
    return Completion(values=[tone for tone in TONES if tone.startswith(argument.value)])


REVIEW = '---\nname: review\ndescription: Read changes.\nmetadata:\n  version: "1.0"\n---\n# Review\n'


def add_skills(folder: Path) -> None:
    """Serves a skill that is written into `folder`."""
    (folder / "review" / "refs").mkdir(parents=True)
    (folder / "review" / "SKILL.md").write_text(REVIEW)
    (folder / "review" / "refs" / "a b.md").write_text("ø\n", encoding="utf-8")
    provider = SkillsDirectoryProvider(roots=folder, experimental_skills=True)
    app.add_provider(provider)
    app.add_extension(SkillsExtension(providers=[provider]))


if __name__ == "__main__":
    transport, *ports = sys.argv[1:]
    port = {"port": int(ports[0])} if ports else {}
    with TemporaryDirectory() as folder:
        add_skills(Path(folder))
        app.run(transport, show_banner=False, log_level="ERROR", **port)
