"""A server for tests only, of which several replicas count together.

What a client is told is numbered, and what lasts is in a folder that all of them see.

    python -m tests.checks.replicas.counting_server --folder FOLDER [--transport http ...]
"""

import fcntl
import os
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated

import anyio
from pydantic import BaseModel, Field

from shared import Context, Implementation, Opening, Resource, ResourceNotFound, Server, TextResourceContents
from shared.extensions.tasks import tasks
from shared.program.run import run

LISTED = 200
"""Resources in the list, beside those of the counters."""
PAGE = 25
PREFIX = "counter://"
BLOCKED_SECONDS = 0.3

Ctx = Context[Path]
Millis = Annotated[float, Field(ge=0, le=60_000)]


class CountingSettings(BaseModel):
    """Where it counts."""

    folder: Path = Field(description="folder that all replicas see")


app = Server[Path](
    Implementation(name="counting", version="1", description="Counts with others."),
    settings=CountingSettings,
    capabilities={"logging": {}},
    extensions=[tasks()],
)
app.page_size = PAGE


@app.lifespan
async def _open(opening: Opening) -> AsyncIterator[Path]:
    yield opening.settings.folder


def revision(folder: Path, name: str) -> int:
    """How often the counter of that name was bumped."""
    try:
        return int((folder / f"{name}.count").read_text() or 0)
    except FileNotFoundError:
        return 0


def advance(folder: Path, name: str) -> int:
    """Bumps a counter, once for each call, whatever other processes do; how often it was bumped."""
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        number = revision(folder, name) + 1
        new = folder / f"{name}.new"
        new.write_text(str(number))
        new.rename(folder / f"{name}.count")
        return number


def note(folder: Path, key: str, said: str) -> None:
    """Adds a line to what was noted under that key: the process, and what it says."""
    with (folder / f"{key}.notes").open("a") as file:
        file.write(f"{os.getpid()} {said}\n")


@app.tool(read_only=True)
async def echo(text: str) -> str:
    """Give the text back."""
    return text


@app.tool(read_only=True)
async def where() -> str:
    """Tell the number of the process."""
    return str(os.getpid())


@app.tool(read_only=True)
async def count(ctx: Ctx, n: int, pause_ms: Millis = 0) -> str:
    """Log the numbers from 1 to `n`."""
    for number in range(1, n + 1):
        await ctx.log("info", number, logger="count")
        await anyio.sleep(pause_ms / 1_000)
    return f"counted to {n}"


@app.tool()
async def work(ctx: Ctx, key: str, steps: int, pause_ms: Millis = 0) -> str:
    """Note and log the numbers of the steps, and note when it is stopped."""
    try:
        for step in range(1, steps + 1):
            note(ctx.state, key, str(step))
            await ctx.log("info", step, logger="work")
            await anyio.sleep(pause_ms / 1_000)
    except anyio.get_cancelled_exc_class():
        note(ctx.state, key, "stopped")
        raise
    note(ctx.state, key, "done")
    return f"worked {steps} steps"


@app.tool(read_only=True, task="optional")
async def job(ctx: Ctx, label: str, pause_ms: Millis = 0) -> str:
    """Take that long, and give the label back."""
    await anyio.sleep(pause_ms / 1_000)
    return f"{label} is done"


class Word(BaseModel):
    """What is asked for."""

    word: str


@app.tool(read_only=True)
async def ask(ctx: Ctx, question: str) -> str:
    """Ask for a word, and give it back."""
    answer = await ctx.ask("word", question, Word)
    return f"{answer.action}: {answer.data.word if answer.data else 'nothing'}"


@app.tool()
async def bump(ctx: Ctx, name: str) -> str:
    """Bump a counter, and tell how often it was bumped."""
    number = advance(ctx.state, name)
    ctx.changes.resource(f"{PREFIX}{name}")
    return str(number)


@app.tool()
async def bump_slowly(ctx: Ctx, name: str) -> str:
    """Bump a counter after a while in which nothing else runs here."""
    note(ctx.state, name, "began")
    time.sleep(BLOCKED_SECONDS)
    number = advance(ctx.state, name)
    ctx.changes.resource(f"{PREFIX}{name}")
    return str(number)


@app.resource("counter://{name}", name="counter", mime_type="text/plain")
async def counter(ctx: Ctx, name: str) -> TextResourceContents:
    """How often the counter was bumped."""
    return TextResourceContents(uri=f"{PREFIX}{name}", text=str(revision(ctx.state, name)))


@app.on_subscribe
async def _subscribe(_ctx: object, uri: str) -> str:
    if not uri.startswith(PREFIX):
        raise ResourceNotFound(uri)
    return uri


@app.lists_resources
async def _pages(_ctx: Ctx) -> list[Resource]:
    return [Resource(uri=f"page://{number}", name=f"page {number}") for number in range(LISTED)]


if __name__ == "__main__":
    sys.exit(run(app))
