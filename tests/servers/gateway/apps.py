"""A server with a page and a tool that it shows, and what clients see of it."""

from typing import Any

from shared import Context, Server
from shared.extensions.apps import MIME_TYPE, UI, App, apps, show, shows_apps
from tests.shared.server.peer import Peer, server

HOST: dict[str, Any] = {"extensions": {UI: {"mimeTypes": [MIME_TYPE]}}}
PAGE = "ui://notes/list"


def notes(text: str = "a note", *, page: str = PAGE) -> Server[Any]:
    """A server whose page, and the result that it shows, say `text`."""
    made = server(extensions=[apps(App(page, lambda: f"<!doctype html><title>{text}</title>"))])

    @made.tool(read_only=True, app=page)
    async def read_notes(ctx: Context[Any]) -> str:
        """Read the notes."""
        if shows_apps(ctx):
            show(ctx, {"notes": [text]})
        return text

    return made


async def linked(peer: Peer) -> dict[str, str]:
    """The page of each tool that has one, in both forms."""
    tools = (await peer.request("tools/list"))["result"]["tools"]
    found = {tool["name"]: tool["_meta"] for tool in tools if "ui" in tool.get("_meta", {})}
    assert all(meta["ui"]["resourceUri"] == meta["ui/resourceUri"] for meta in found.values())
    return {name: meta["ui/resourceUri"] for name, meta in found.items()}


async def title(peer: Peer, uri: str) -> str:
    """The title of the page at `uri`."""
    answer = await peer.request("resources/read", {"uri": uri})
    (content,) = answer["result"]["contents"]
    assert (content["uri"], content["mimeType"], content["_meta"]["ui"]["csp"]) == (uri, MIME_TYPE, {})
    return str(content["text"]).partition("<title>")[2].partition("</title>")[0]


async def shown(peer: Peer, tool: str = "read_notes") -> Any:
    """What the page of a tool is given; None where it is given nothing."""
    return (await peer.call(tool))["result"].get("_meta", {}).get("view")
