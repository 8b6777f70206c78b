"""The description of several servers as one: the capabilities of all, and as much of their instructions as fits."""

from collections.abc import Mapping, Sequence
from typing import Any

from shared.protocol.identity import LOG_LEVELS, Audience, Identity
from shared.protocol.types.client import LogLevel
from shared.server.declaration import MAX_INSTRUCTIONS

from .server import JoinedServer

_LIST_CAPABILITIES: dict[str, Any] = {"tools": {"listChanged": True}, "prompts": {"listChanged": True}}
_LIST_CAPABILITIES["resources"] = {"listChanged": True}
_POSSIBLE_CAPABILITIES: dict[str, Any] = {
    **_LIST_CAPABILITIES,
    "resources": {"subscribe": True, "listChanged": True},
    "completions": {},
    "logging": {},
}
"""The capabilities that are assumed for a server that is not open."""
_ELLIPSIS = " …"


def capabilities_of(servers: Sequence[JoinedServer]) -> dict[str, Any]:
    """Return the union of the servers' capabilities. All lists are declared as changing: servers come and go."""
    union: dict[str, Any] = {}
    for server in servers:
        run = server.running
        union = _unite(union, _POSSIBLE_CAPABILITIES if run is None else run.identity.capabilities)
    return {
        name: {**value, **_LIST_CAPABILITIES.get(name, {})}
        for name, value in union.items()
        if isinstance(value, dict)
    }


def audiences_of(servers: Sequence[JoinedServer]) -> dict[tuple[str, ...], Audience]:
    """Return the clients to which each capability is declared: those to which any of the servers declares it."""
    audiences: dict[tuple[str, ...], Audience] = {}
    for identity in _identities(servers):
        for path, audience in identity.audiences.items():
            audiences[path] = audience if path not in audiences else audiences[path].union(audience)
    return audiences


def log_level_of(servers: Sequence[JoinedServer]) -> LogLevel | None:
    """Return the least severe level of log messages that any of the servers sends to clients that have not set a
    level; None if none sends any."""
    levels = [identity.log_level for identity in _identities(servers) if identity.log_level is not None]
    return min(levels, key=LOG_LEVELS.index, default=None)


def instructions_of(servers: Sequence[JoinedServer]) -> str | None:
    """Return the instructions of all servers, each below a heading with the server's name, in at most
    `MAX_INSTRUCTIONS` bytes. Long instructions are truncated first, so that short ones stay complete."""
    texts = {server.name: server.running.identity.instructions for server in servers if server.running is not None}
    full_texts = {name: text.strip() for name, text in texts.items() if text and text.strip()}
    headings = {name: f"## {name}\n" for name in full_texts}
    remaining = MAX_INSTRUCTIONS - sum(len(head.encode()) + 2 for head in headings.values())
    included: dict[str, str] = {}
    for number, name in enumerate(sorted(full_texts, key=lambda name: len(full_texts[name].encode()))):
        data, size = full_texts[name].encode(), remaining // (len(full_texts) - number)
        included[name] = full_texts[name]
        if len(data) > size:  # truncate after a whole word
            words = data[: max(size - len(_ELLIPSIS.encode()), 0)].decode(errors="ignore").rsplit(maxsplit=1)
            included[name] = words[0] + _ELLIPSIS if len(words) > 1 else ""
        remaining -= len(included[name].encode())
    return "\n\n".join(headings[name] + included[name] for name in full_texts if included[name]) or None


def _identities(servers: Sequence[JoinedServer]) -> list[Identity]:
    return [server.running.identity for server in servers if server.running is not None]


def _unite(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    union = {**first, **second}
    for name in first.keys() & second.keys():
        before, after = first[name], second[name]
        if isinstance(before, dict) and isinstance(after, dict):
            union[name] = _unite(before, after)
        elif isinstance(before, bool) and isinstance(after, bool):
            union[name] = before or after
        else:
            union[name] = before
    return union
