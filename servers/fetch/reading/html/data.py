"""Data that a page carries for programs: JSON-LD, and what its own scripts begin with."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from lxml.html import HtmlElement

__all__ = ["blocks_of", "linked_data"]

_KINDS = re.compile(r"\s*application/(?:json|(?:[\w.-]+\+)?json)\s*(?:;.*)?", re.IGNORECASE)
_AROUND = re.compile(r"^\s*(?:<!--|//\s*<!\[CDATA\[|<!\[CDATA\[)|(?:-->|//\s*\]\]>|\]\]>)\s*$")
_LONGEST = 1_000_000
"""Characters of one block of JSON-LD that is looked into for what a page says of itself."""
_MOST_NODES = 1_000


def blocks_of(elements: Iterable[HtmlElement]) -> tuple[list[dict[str, Any]], int]:
    """The blocks of JSON within elements, each with its type and id, and how many more could not be read."""
    blocks: list[dict[str, Any]] = []
    failed = 0
    for script in (script for element in elements for script in element.iter("script")):
        kind = script.get("type") or ""
        if not _KINDS.fullmatch(kind):
            continue
        data, read = _parsed(script.text or "")
        failed += not read
        if read:
            named = {"id": script.get("id")} if script.get("id") else {}
            blocks.append({"type": kind.strip().lower(), **named, "data": data})
    return blocks, failed


def linked_data(root: HtmlElement) -> list[dict[str, Any]]:
    """The things that the JSON-LD of a page describes, outer before inner ones; at most a thousand."""
    things: list[dict[str, Any]] = []
    for script in root.iter("script"):
        if (script.get("type") or "").strip().lower() == "application/ld+json" and len(script.text or "") < _LONGEST:
            data, _ = _parsed(script.text or "")
            things += _things(data, _MOST_NODES - len(things))
    return things


def _parsed(text: str) -> tuple[Any, bool]:
    try:
        return json.loads(_AROUND.sub("", text), strict=False, parse_constant=str), True
    except (ValueError, RecursionError):
        return None, False


def _things(data: Any, most: int) -> Iterator[dict[str, Any]]:
    """The objects of JSON-LD: those at the top, in a graph, and what a page is mainly about."""
    waiting = [data]
    for one in waiting:
        if most <= 0:
            return
        if isinstance(one, list):
            waiting += one[:_MOST_NODES]
        elif isinstance(one, dict):
            most -= 1
            yield one
            waiting += [one[name] for name in ("@graph", "mainEntity", "mainEntityOfPage") if name in one]
