"""A server that writes notes."""

from shared import Implementation, Server
from shared.program.run import run

app = Server[None](Implementation(name="notes", version="1.0.0"))
notes = {"shopping": "bread, milk"}


@app.tool
def write_note(name: str, text: str) -> str:
    """Write a note, replacing any note with that name."""
    notes[name] = text
    return f"wrote {name}"


if __name__ == "__main__":
    raise SystemExit(run(app))
