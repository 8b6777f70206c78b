"""The pages of MCP Apps at several servers, each under a URI that is no other's.

    db:   ui://sqlite/result                 ui://db__sqlite/result
    logs: ui://sqlite/result           ──▶   ui://logs__sqlite/result
    web:  ui://fetch/page                    ui://fetch/page

What several have gets their names before it, as their tools do: a host may keep a page under its URI, and each page
asks its own server for more.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from shared.protocol.identity import declared

_SCHEME = "ui://"
_FLAT = "ui/resourceUri"


def page_of(tool: Mapping[str, Any]) -> str | None:
    """The URI of the page that a tool of a list names; None where it names none."""
    for path in (("_meta", "ui", "resourceUri"), ("_meta", _FLAT)):
        uri = declared(tool, path)
        if isinstance(uri, str) and uri.startswith(_SCHEME):
            return uri
    return None


def shared_pages(lists: Iterable[Iterable[Mapping[str, Any]]]) -> set[str]:
    """The URIs that tools of several of these lists name."""
    seen: set[str] = set()
    shared: set[str] = set()
    for tools in lists:
        own = {uri for tool in tools if (uri := page_of(tool)) is not None}
        shared |= seen & own
        seen |= own
    return shared


def with_page(tool: Mapping[str, Any], uri: str, full: str) -> dict[str, Any]:
    """A tool whose page at `uri` is known as `full`."""
    meta = dict(tool["_meta"])
    if declared(meta, ("ui", "resourceUri")) == uri:
        meta["ui"] = {**meta["ui"], "resourceUri": full}
    if meta.get(_FLAT) == uri:
        meta[_FLAT] = full
    return {**tool, "_meta": meta}
