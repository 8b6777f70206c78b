"""Subscriptions to prompts, skills and the index, and what is told of changes."""

from collections.abc import Mapping

from shared import ResourceNotFound, Running
from shared.protocol.uri_template import UriTemplate
from shared.server.changes import Changes

from ..app import Ctx, Opened, app, hears
from ..resources import FILE, INDEX, RENDERED, SOURCE, uri_of
from .watch import News

_SKILL = "skill://{name}/{+file}"
_ENDINGS = {SOURCE: "", RENDERED: "/rendered", FILE: "/files", _SKILL: "/skill"}
"""What is told apart, and how its key ends."""
_TEMPLATES = {UriTemplate(uri): ending for uri, ending in _ENDINGS.items()}


@hears
def _tell(opened: Opened, changes: Changes, news: News) -> None:
    changes.resource(INDEX)
    if news.names:
        changes.prompts()
    if not news.names and not news.others:
        return
    changes.resources()
    for key, name in opened.subscribed.items():
        # Only the source of a prompt has nothing of other files, which may be prompts as well.
        if name in news.names or key != uri_of(name):
            changes.resource(key)


@app.on_subscribe
async def _begin(ctx: Ctx, uri: str) -> str:
    if uri == INDEX:
        return INDEX
    for template, ending in _TEMPLATES.items():
        named = template.match(uri)
        # Whoever subscribes to a prompt that goes is told when it comes again.
        if named is not None and named["name"] in ctx.state.libraries:
            key = uri_of(named["name"]) + ending
            ctx.state.subscribed[key] = named["name"]
            return key
    raise ResourceNotFound(uri)


@app.on_unsubscribe
async def _end(running: Running[Opened], key: str) -> None:
    running.state.subscribed.pop(key, None)


@app.on_health
def _watching(running: Running[Opened]) -> Mapping[str, object]:
    return {"watching": {"degraded": running.state.watch.degraded}}
