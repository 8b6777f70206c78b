"""A notes server that asks the user before it deletes a note."""

from shared import Context, Implementation, ResourceNotFound, Server, ToolError, expand_uri
from shared.program.run import run

app = Server[None](Implementation(name="notes", version="1.0.0"))
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


if __name__ == "__main__":
    raise SystemExit(run(app))
