"""Pages of MCP Apps at several servers, each under a URI that is unique to its server.

    db:   ui://sqlite/result                 ui://db__sqlite/result
    logs: ui://sqlite/result           ──▶   ui://logs__sqlite/result
    web:  ui://fetch/page                    ui://fetch/page

A URI that several servers use gets the name of the server as a prefix, as tool names do: a host may cache a page by
its URI, and each page sends its requests to its own server.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from shared.protocol.identity import find_capability

_SCHEME = "ui://"
_FLAT = "ui/resourceUri"


def page_of(tool: Mapping[str, Any]) -> str | None:
    """Return the URI of the page that an entry of a tool list names; None if it names none."""
    for path in (("_meta", "ui", "resourceUri"), ("_meta", _FLAT)):
        uri = find_capability(tool, path)
        if isinstance(uri, str) and uri.startswith(_SCHEME):
            return uri
    return None


def shared_pages(lists: Iterable[Iterable[Mapping[str, Any]]]) -> set[str]:
    """Return the URIs that occur in more than one of these lists of tools."""
    seen: set[str] = set()
    shared: set[str] = set()
    for tools in lists:
        own = {uri for tool in tools if (uri := page_of(tool)) is not None}
        shared |= seen & own
        seen |= own
    return shared


def rename_page(tool: Mapping[str, Any], uri: str, full: str) -> dict[str, Any]:
    """Return a copy of a tool whose page at `uri` is published as `full`."""
    meta = dict(tool["_meta"])
    if find_capability(meta, ("ui", "resourceUri")) == uri:
        meta["ui"] = {**meta["ui"], "resourceUri": full}
    if meta.get(_FLAT) == uri:
        meta[_FLAT] = full
    return {**tool, "_meta": meta}
