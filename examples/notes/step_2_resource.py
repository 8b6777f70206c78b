"""A server that writes notes, each of which is a resource."""

from shared import Implementation, Server
from shared.program.run import run

app = Server[None](Implementation(name="notes", version="1.0.0"))
notes = {"shopping": "bread, milk"}


@app.tool
def write_note(name: str, text: str) -> str:
    """Write a note, replacing any note with that name."""
    notes[name] = text
    return f"wrote {name}"


@app.resource("note://{name}", mime_type="text/plain")
def note(name: str) -> str | None:
    """One note."""
    return notes.get(name)


if __name__ == "__main__":
    raise SystemExit(run(app))
