"""A notes server with a tool that takes a long time."""

import anyio

from shared import Context, Implementation, ResourceNotFound, Server, ToolError, expand_uri
from shared.extensions.tasks import tasks
from shared.program.run import run

app = Server[None](Implementation(name="notes", version="1.0.0"), extensions=[tasks()])
notes = {"shopping": "bread, milk"}


@app.tool
async def write_note(ctx: Context[None], name: str, text: str) -> str:
    """Write a note, replacing any note with that name."""
    notes[name] = text
    ctx.changes.resource(expand_uri("note://{name}", name=name))
    return f"wrote {name}"


@app.resource("note://{name}", mime_type="text/plain")
def note(name: str) -> str | None:
    """One note."""
    return notes.get(name)


@app.on_subscribe
async def subscribe(ctx: Context[None], uri: str) -> str:
    if uri not in [expand_uri("note://{name}", name=name) for name in notes]:
        raise ResourceNotFound(uri)
    return uri


@app.prompt
def summarize(name: str) -> str:
    """Summarize a note."""
    return f"Summarize this note in one sentence:\n\n{notes.get(name, 'It is empty.')}"


@app.tool
async def delete_note(ctx: Context[None], name: str) -> str:
    """Delete a note, if the user agrees."""
    if name not in notes:
        raise ToolError(f"there is no note {name!r}; available: {', '.join(notes)}")
    await ctx.confirm(f"Delete the note {name!r}?")
    del notes[name]
    ctx.changes.resource(expand_uri("note://{name}", name=name))
    return f"deleted {name}"


@app.tool(read_only=True, task="optional")
async def count_words(ctx: Context[None]) -> dict[str, int]:
    """Count the words of each note."""
    counts: dict[str, int] = {}
    for name, text in notes.items():
        await ctx.progress(len(counts), len(notes), f"counting {name}")
        await anyio.sleep(1)  # real work takes its time
        counts[name] = len(text.split())
    return counts


if __name__ == "__main__":
    raise SystemExit(run(app))
