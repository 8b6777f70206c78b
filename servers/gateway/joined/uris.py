"""URIs that are qualified with the name of their server, so that they are unique among several servers:

    team + prompt://hello     ──▶  prompt://team__hello
    team + file:///a.txt      ──▶  file://team__/a.txt
    team + prompt://{name}    ──▶  prompt://team__{name}

Web URIs stay unchanged: clients may load them directly.
"""

import re
from collections.abc import Callable
from typing import Any

from shared.client.group.names import SEPARATOR

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?://)?")
_WEB_SCHEMES = ("http:", "https:")


def qualified_uri(server: str, uri: str) -> str:
    """Return the URI or URI template `uri` of `server` with the server's name in it. A web URI stays unchanged."""
    scheme = _scheme_of(uri)
    return uri if scheme.lower().startswith(_WEB_SCHEMES) else f"{scheme}{server}{SEPARATOR}{uri[len(scheme) :]}"


def split_uri(uri: str) -> tuple[str, str]:
    """Return the server that a qualified URI names, and the URI of the resource there. If `uri` is not qualified, the
    server is empty and the URI unchanged."""
    scheme = _scheme_of(uri)
    server, separator, rest = uri[len(scheme) :].partition(SEPARATOR)
    return (server, scheme + rest) if separator and not scheme.lower().startswith(_WEB_SCHEMES) else ("", uri)


def rename_uris(result: dict[str, Any], rename: Callable[[str], str]) -> dict[str, Any]:
    """Return `result` in which `rename` has replaced the URIs of resource contents, and of resources that content
    blocks link or embed."""
    renamed_fields: dict[str, Any] = {}
    for key, rename_entry in (("contents", _rename), ("content", _rename_block), ("messages", _rename_message)):
        entries = result.get(key)
        if isinstance(entries, list):
            renamed = [rename_entry(entry, rename) for entry in entries]
            if renamed != entries:
                renamed_fields[key] = renamed
    # Return the same object if nothing has changed, since its encoding may be cached.
    return {**result, **renamed_fields} if renamed_fields else result


def _scheme_of(uri: str) -> str:
    match = _SCHEME.match(uri)
    return "" if match is None else match[0]


def _rename(entry: Any, rename: Callable[[str], str]) -> Any:
    uri = entry.get("uri") if isinstance(entry, dict) else None
    return {**entry, "uri": rename(uri)} if isinstance(uri, str) else entry


def _rename_block(block: Any, rename: Callable[[str], str]) -> Any:
    match block:
        case {"type": "resource_link"}:
            return _rename(block, rename)
        case {"type": "resource", "resource": resource}:
            return {**block, "resource": _rename(resource, rename)}
        case _:
            return block


def _rename_message(message: Any, rename: Callable[[str], str]) -> Any:
    if not isinstance(message, dict):
        return message
    content = message.get("content")
    if isinstance(content, list):
        return {**message, "content": [_rename_block(block, rename) for block in content]}
    return {**message, "content": _rename_block(content, rename)}
