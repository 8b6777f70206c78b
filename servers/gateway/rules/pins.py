"""`Pins`: a file with the tool definitions that an operator has accepted.

    {"tools": {"read": {"sha256": "...", "definition": {"name": "read", "description": "...", "inputSchema": {}}}}}

A definition consists of the parts of a tool that models see, or on which hosts base decisions: name, title,
description, schemas, annotations and, for clients that support MCP Apps, the UI resource. The digest is computed from
the definition as JSON with sorted keys, without the UI resource, which other clients do not get. The definition
itself is stored so that changes can be shown to the operator. Anyone who can write the file can accept tools.
"""

import json
import logging
from collections.abc import Collection, Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from shared.program.files.atomic import prepare_replacement, put_in_place
from shared.program.files.entries import entry_at, stat_entry

log = logging.getLogger("shared.gateway")

_UI_KEYS = ("ui", "ui/resourceUri")
"""The keys of `_meta` that name the UI resource of a tool."""
_FIELDS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")

Stamp = tuple[int, int, int] | None


def definition_of(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return the definition of a tool that a server lists: the parts that are pinned."""
    meta = tool.get("_meta")
    page = {name: meta[name] for name in _UI_KEYS if meta.get(name) is not None} if isinstance(meta, dict) else {}
    definition = {name: tool[name] for name in _FIELDS if tool.get(name) is not None}
    return {**definition, "_meta": page} if page else definition


def digest_of(tool: Mapping[str, Any]) -> str:
    """Return the SHA-256 digest of a tool's definition without its UI resource: 64 hexadecimal digits."""
    definition = {name: value for name, value in definition_of(tool).items() if name != "_meta"}
    text = json.dumps(definition, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()


class Pins:
    """The pins of one server. If another process changes the file, `refresh` reads it again."""

    def __init__(self, path: Path) -> None:
        """Read the pins. Raises ValueError with a one-line message for an unreadable file, or one without pins."""
        self.path = path
        self._tools: dict[str, dict[str, Any]] | None = None
        self._stamp: Stamp = None
        self._load()

    @property
    def is_new(self) -> bool:
        """True if nothing is pinned yet."""
        return self._tools is None

    @property
    def names(self) -> list[str]:
        """The names of the tools that are pinned."""
        return list(self._tools or ())

    def digest(self, name: str) -> str | None:
        """Return the digest of the pinned tool with that name; None if it is not pinned."""
        pinned = (self._tools or {}).get(name)
        return None if pinned is None else str(pinned["sha256"])

    def definition(self, name: str) -> dict[str, Any] | None:
        """Return the definition of the pinned tool with that name; None if it is not pinned."""
        pinned = (self._tools or {}).get(name)
        return None if pinned is None else dict(pinned["definition"])

    def matches(self, tool: Mapping[str, Any]) -> bool:
        """Return True if a tool matches its pin. The UI resource is compared only if `tool` has one, since some
        clients do not get it."""
        pinned = (self._tools or {}).get(str(tool["name"]))
        if pinned is None or pinned["sha256"] != digest_of(tool):
            return False
        page = definition_of(tool).get("_meta")
        return page is None or page == pinned["definition"].get("_meta") or self._may_gain_page(pinned)

    def pin_first_pages(self, tools: Iterable[Mapping[str, Any]]) -> None:
        """Pin the UI resources of these tools, which match their pins, if the pins are from a list for a client that
        gets no UI resources. Raises OSError like `record`."""
        pinned = {str(tool["name"]): tool for tool in tools if "_meta" in definition_of(tool)}
        first = {name: tool for name, tool in pinned.items() if self._may_gain_page((self._tools or {})[name])}
        if first:
            self.record(first.values(), shows_apps=True, keep=self._tools or ())

    def refresh(self) -> bool:
        """Read the file again if it has changed; return True if new pins were read. If the file can't be read, the
        error is logged and the previous pins stay."""
        if _stamp_of(self.path) == self._stamp:
            return False
        try:
            self._load()
        except ValueError as error:
            log.error("%s; earlier pins are kept", error)
            return False
        return True

    def record(self, tools: Iterable[Mapping[str, Any]], *, shows_apps: bool, keep: Collection[str] = ()) -> None:
        """Pin these tools, and drop all other pins except those named in `keep`. `shows_apps` is true if the tools
        were listed for a client that supports MCP Apps. Raises OSError if the file can't be written: then the tools
        are pinned only in this process."""
        remaining = {name: pinned for name, pinned in (self._tools or {}).items() if name in keep}
        self._tools = remaining | {
            str(tool["name"]): {
                "sha256": digest_of(tool),
                "definition": definition_of(tool),
                "pages": shows_apps,
            }
            for tool in tools
        }
        text = json.dumps({"tools": self._tools}, indent=2)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        entry = entry_at(self.path.resolve())
        existing = stat_entry(entry)
        put_in_place(prepare_replacement(entry, text.encode(), existing, mode=0o600), entry, existing)
        self._stamp = _stamp_of(self.path)

    @staticmethod
    def _may_gain_page(pinned: Mapping[str, Any]) -> bool:
        return not pinned["pages"] and "_meta" not in pinned["definition"]

    def _load(self) -> None:
        # Read the stamp before the text, so that the next `refresh` detects a change in between.
        stamp = _stamp_of(self.path)
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            self._tools, self._stamp = None, None
            return
        except OSError as error:
            self._stamp = stamp
            raise ValueError(f"{self.path}: {error.strerror}") from None
        self._stamp = stamp
        try:
            tools = json.loads(text)["tools"]
            self._tools = {
                name: {
                    "sha256": pin["sha256"],
                    "definition": {**pin["definition"]},
                    "pages": pin.get("pages", False) is True,
                }
                for name, pin in tools.items()
            }
        except (ValueError, LookupError, TypeError, AttributeError):
            raise ValueError(f"{self.path}: not a pin file; remove it to pin the tools again") from None


def _stamp_of(path: Path) -> Stamp:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
