"""Resources: text, bytes, a family of them under a template, and one that changes."""

import json
from dataclasses import dataclass

from shared import ResourceNotFound, TextResourceContents

from .app import app
from .media import PNG

__all__ = ["WATCHED", "Watched", "static_binary", "static_text", "template_data", "watched_resource"]


@dataclass
class Watched:
    """The resource that changes; all clients see the same."""

    uri: str = "test://watched-resource"
    version: int = 1


WATCHED = Watched()


@app.resource("test://static-text", name="static-text", title="Static text", mime_type="text/plain")
async def static_text() -> str:
    """A text that never changes."""
    return "This is the content of the static text resource."


@app.resource("test://static-binary", name="static-binary", title="Static picture", mime_type="image/png")
async def static_binary() -> bytes:
    """A picture that never changes."""
    return PNG


@app.resource(WATCHED.uri, name="watched-resource", title="Watched resource", mime_type="text/plain")
async def watched_resource() -> str:
    """A text to subscribe to; trigger_resource_update changes it."""
    return f"This is version {WATCHED.version} of the watched resource."


@app.resource("test://template/{id}/data", name="template-data", title="Data by id", mime_type="application/json")
async def template_data(id: str) -> TextResourceContents:
    """Data made up for any id."""
    data = {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}
    text = json.dumps(data, separators=(",", ":"))
    return TextResourceContents(uri=f"test://template/{id}/data", mime_type="application/json", text=text)


@app.on_subscribe
async def _subscribe(_ctx: object, uri: str) -> str:
    if uri != WATCHED.uri:
        raise ResourceNotFound(uri)
    return uri


@app.completes("resource", "test://template/{id}/data", "id")
async def _complete_id(_ctx: object, typed: str, _settled: object) -> list[str]:
    return [id_ for id_ in ("123", "456", "789") if id_.startswith(typed)]
