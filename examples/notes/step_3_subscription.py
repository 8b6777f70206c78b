"""A server that writes notes, and notifies clients when one changes."""

from shared import Context, Implementation, ResourceNotFound, Server, expand_uri
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


if __name__ == "__main__":
    raise SystemExit(run(app))
