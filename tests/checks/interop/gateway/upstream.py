"""The server behind every way of the matrix: the bench server, with what only these tests need.

python -m tests.checks.interop.gateway.upstream FOLDER [options of every server]

Where each session has a process of its own, what one of them does the others don't see. So what changes is told by
files in FOLDER, which every process looks at: `tools`, `prompts` and `resources` are there when something extra is,
and each line of `watched` is another change to the resource.
"""

import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from pydantic import BaseModel

from servers.everything.features import answers, calls, prompts, questions, resources, schemas
from servers.everything.features.schemas import Name
from servers.everything.server import app as bench
from shared import Context, Features, Opening, ResourceNotFound, Server
from shared.extensions.tasks import tasks
from shared.program.run import run
from shared.program.settings.options import positional

LOOK_SECONDS = 0.02
WATCHED = resources.WATCHED.uri
EXTRA_TOOL, EXTRA_PROMPT, EXTRA_RESOURCE = "extra_tool", "extra_prompt", resources.EXTRA_URI


class Settings(BaseModel):
    """Where changes are told."""

    folders: list[Path] = positional("directory in which files tell what changes", "FOLDER", required=True)


own = Features[None]()


@own.tool(read_only=True)
async def hold(ctx: Context[Any], file: str) -> str:
    """Report once, and wait to be cancelled, which is written into the file."""
    await ctx.progress(1)
    return await _held(file)


@own.tool(read_only=True)
async def show_meta(ctx: Context[Any]) -> dict[str, Any]:
    """Answer with what of `_meta` is not the protocol's own."""
    meta: dict[str, Any] = ctx.call.raw.get("_meta", {})
    return {name: value for name, value in meta.items() if not name.startswith("io.modelcontextprotocol/")}


@own.tool(read_only=True, task="required")
async def greet_as_task(ctx: Context[Any]) -> str:
    """Ask for a name during a task."""
    answer = await ctx.ask("name", "What is your name?", Name)
    return f"Hello, {answer.data.name}!" if answer.data is not None else answer.action


@own.tool(read_only=True, task="required")
async def hold_as_task(ctx: Context[Any], file: str) -> str:
    """Report once, and wait to be cancelled, which is written into the file."""
    await ctx.progress(1, 2, "holding")
    return await _held(file)


async def _held(file: str) -> str:
    try:
        await anyio.sleep_forever()
    finally:
        Path(file).write_text("stopped")
    return "never"


app = Server[None](
    bench.implementation,
    instructions="For tests only.",
    capabilities={"logging": {}},
    settings=Settings,
    extensions=[tasks()],
    include=[
        answers.features,
        resources.features,
        questions.features,
        calls.features,
        prompts.features,
        questions.rounds,
        schemas.features,
        own,
    ],
)
app.log_level = None


@app.on_subscribe
async def _subscribe(_ctx: object, uri: str) -> str:
    if uri != WATCHED:
        raise ResourceNotFound(uri)
    return uri


@app.lifespan
async def _open(opening: Opening) -> AsyncIterator[None]:
    async with anyio.create_task_group() as looking:
        looking.start_soon(_look, opening)
        yield
        looking.cancel_scope.cancel()


async def _look(opening: Opening) -> None:
    [folder] = opening.settings.folders
    extras = {
        "tools": (_add_tool, partial(opening.features.tools.remove, EXTRA_TOOL)),
        "prompts": (_add_prompt, partial(opening.features.prompts.remove, EXTRA_PROMPT)),
        "resources": (_add_resource, partial(opening.features.resources.remove, EXTRA_RESOURCE)),
    }
    there: set[str] = set()
    changed = _size(folder / "watched")
    while True:
        for kind, (add, remove) in extras.items():
            if (folder / kind).exists() is not (kind in there):
                add(opening.features) if kind not in there else remove()
                there ^= {kind}
                getattr(opening.changes, kind)()
        if (size := _size(folder / "watched")) != changed:
            changed = size
            opening.changes.resource(WATCHED)
        await anyio.sleep(LOOK_SECONDS)


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _add_tool(features: Features[Any]) -> None:
    features.tool(read_only=True)(resources.extra_tool)


def _add_prompt(features: Features[Any]) -> None:
    features.prompt()(resources.extra_prompt)


def _add_resource(features: Features[Any]) -> None:
    features.resource(EXTRA_RESOURCE, mime_type="text/plain")(resources.extra_resource)


if __name__ == "__main__":
    sys.exit(run(app))
