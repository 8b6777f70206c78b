"""Gives each UI resource of MCP Apps, which is a web page, a URI that is unique among several servers.

    db:   ui://sqlite/result                 ui://db__sqlite/result
    logs: ui://sqlite/result           ──▶   ui://logs__sqlite/result
    web:  ui://fetch/page                    ui://fetch/page

A URI that several servers use is qualified with the name of the server, as tool names are. A host may cache a page by
its URI, and the requests that a page sends go to the server of its URI.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from shared.protocol.identity import find_capability

_SCHEME = "ui://"
_LEGACY_KEY = "ui/resourceUri"


def ui_uri_of(tool: Mapping[str, Any]) -> str | None:
    """Return the URI of the UI resource that a tool of a list names; None if it names none."""
    for path in (("_meta", "ui", "resourceUri"), ("_meta", _LEGACY_KEY)):
        uri = find_capability(tool, path)
        if isinstance(uri, str) and uri.startswith(_SCHEME):
            return uri
    return None


def shared_ui_uris(lists: Iterable[Iterable[Mapping[str, Any]]]) -> set[str]:
    """Return the URIs of UI resources that occur in more than one of these lists of tools."""
    seen: set[str] = set()
    shared: set[str] = set()
    for tools in lists:
        uris = {uri for tool in tools if (uri := ui_uri_of(tool)) is not None}
        shared |= seen & uris
        seen |= uris
    return shared


def rename_ui_uri(tool: Mapping[str, Any], uri: str, qualified: str) -> dict[str, Any]:
    """Return a copy of a tool in which `qualified` replaces `uri` as the URI of its UI resource."""
    meta = dict(tool["_meta"])
    if find_capability(meta, ("ui", "resourceUri")) == uri:
        meta["ui"] = {**meta["ui"], "resourceUri": qualified}
    if meta.get(_LEGACY_KEY) == uri:
        meta[_LEGACY_KEY] = qualified
    return {**tool, "_meta": meta}
