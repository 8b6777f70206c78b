"""The description of several servers as one: the capabilities of all, and as much of their instructions as fits."""

from collections.abc import Mapping, Sequence
from typing import Any

from shared.protocol.identity import LOG_LEVELS, Audience, Identity
from shared.protocol.types.client import LogLevel
from shared.server.declaration import MAX_INSTRUCTIONS

from .server import Part

_CHANGING: dict[str, Any] = {"tools": {"listChanged": True}, "prompts": {"listChanged": True}}
_CHANGING["resources"] = {"listChanged": True}
_ANYTHING: dict[str, Any] = {
    **_CHANGING,
    "resources": {"subscribe": True, "listChanged": True},
    "completions": {},
    "logging": {},
}
"""The possible capabilities of a server that is not open."""
_CUT = " …"


def capabilities_of(parts: Sequence[Part]) -> dict[str, Any]:
    """Return the union of their capabilities. The lists may change, since servers come and go."""
    union: dict[str, Any] = {}
    for part in parts:
        running = part.running
        union = _unite(union, _ANYTHING if running is None else running.identity.capabilities)
    return {name: {**value, **_CHANGING.get(name, {})} for name, value in union.items() if isinstance(value, dict)}


def audiences_of(parts: Sequence[Part]) -> dict[tuple[str, ...], Audience]:
    """Return the clients to which each capability is declared: those to which one of the servers declares it."""
    audiences: dict[tuple[str, ...], Audience] = {}
    for identity in _identities(parts):
        for path, audience in identity.audiences.items():
            audiences[path] = audience if path not in audiences else audiences[path].union(audience)
    return audiences


def log_level_of(parts: Sequence[Part]) -> LogLevel | None:
    """Return the least severe level that one of them sends to clients that never set a level."""
    levels = [identity.log_level for identity in _identities(parts) if identity.log_level is not None]
    return min(levels, key=LOG_LEVELS.index, default=None)


def instructions_of(parts: Sequence[Part]) -> str | None:
    """Return the instructions of all, each below the name of its server, in 2,048 bytes. Short ones stay whole while
    long ones can be cut."""
    texts = {part.name: part.running.identity.instructions for part in parts if part.running is not None}
    full_texts = {name: text.strip() for name, text in texts.items() if text and text.strip()}
    heads = {name: f"## {name}\n" for name in full_texts}
    remaining = MAX_INSTRUCTIONS - sum(len(head.encode()) + 2 for head in heads.values())
    shown: dict[str, str] = {}
    for number, name in enumerate(sorted(full_texts, key=lambda name: len(full_texts[name].encode()))):
        data, size = full_texts[name].encode(), remaining // (len(full_texts) - number)
        shown[name] = full_texts[name]
        if len(data) > size:  # it ends with a whole word
            words = data[: max(size - len(_CUT.encode()), 0)].decode(errors="ignore").rsplit(maxsplit=1)
            shown[name] = words[0] + _CUT if len(words) > 1 else ""
        remaining -= len(shown[name].encode())
    return "\n\n".join(heads[name] + shown[name] for name in full_texts if shown[name]) or None


def _identities(parts: Sequence[Part]) -> list[Identity]:
    return [part.running.identity for part in parts if part.running is not None]


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
