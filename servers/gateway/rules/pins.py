"""`Pins`: the definitions of tools that an operator has accepted, in a file.

    {"tools": {"read": {"sha256": "...", "definition": {"name": "read", "description": "...", "inputSchema": {}}}}}

A definition is what a model is told of a tool, and what a host decides by: its name, title, description, schemas,
annotations and, for clients that show pages, its page. Its digest is taken over JSON with sorted keys, without the
page, of which other clients are not told. The definition itself is there for people: so that it can be shown what has
changed. Whoever may write the file may accept tools.
"""

import json
import logging
from collections.abc import Collection, Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from shared.program.files.atomic import beside, prepared, put_in_place
from shared.program.files.entries import current, entry_at

log = logging.getLogger("shared.gateway")

_PAGES = ("ui", "ui/resourceUri")
"""What says in `_meta` which page a tool has."""
_FIELDS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")

Stamp = tuple[int, int, int] | None


def definition_of(tool: Mapping[str, Any]) -> dict[str, Any]:
    """What is pinned of a tool as its server lists it."""
    meta = tool.get("_meta")
    page = {name: meta[name] for name in _PAGES if meta.get(name) is not None} if isinstance(meta, dict) else {}
    definition = {name: tool[name] for name in _FIELDS if tool.get(name) is not None}
    return {**definition, "_meta": page} if page else definition


def digest_of(tool: Mapping[str, Any]) -> str:
    """The digest of a tool's definition without its page: 64 hexadecimal digits."""
    definition = {name: value for name, value in definition_of(tool).items() if name != "_meta"}
    text = json.dumps(definition, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()


class Pins:
    """The pins of one server. What another process writes into the file is seen with the next `refresh`."""

    def __init__(self, path: Path) -> None:
        """Raises ValueError, in one line, for a file that can't be read or is no file of pins."""
        self.path = path
        self._tools: dict[str, dict[str, Any]] | None = None
        self._stamp: Stamp = None
        self._load()

    @property
    def is_new(self) -> bool:
        """Whether nothing was pinned yet."""
        return self._tools is None

    @property
    def names(self) -> list[str]:
        """The names of the tools that are pinned."""
        return list(self._tools or ())

    def digest(self, name: str) -> str | None:
        """The digest that a tool of that name was pinned with."""
        pinned = (self._tools or {}).get(name)
        return None if pinned is None else str(pinned["sha256"])

    def definition(self, name: str) -> dict[str, Any] | None:
        """The definition that a tool of that name was pinned with."""
        pinned = (self._tools or {}).get(name)
        return None if pinned is None else dict(pinned["definition"])

    def fits(self, tool: Mapping[str, Any]) -> bool:
        """Whether a tool is as it was pinned; one that a client is told no page of is that without it."""
        pinned = (self._tools or {}).get(str(tool["name"]))
        if pinned is None or pinned["sha256"] != digest_of(tool):
            return False
        page = definition_of(tool).get("_meta")
        return page is None or page == pinned["definition"].get("_meta") or self._is_first_page(pinned)

    def learn_pages(self, tools: Iterable[Mapping[str, Any]]) -> None:
        """Pins the pages of these tools, which fit, where they were pinned for clients that show none. Raises OSError
        as `record` does."""
        pinned = {str(tool["name"]): tool for tool in tools if "_meta" in definition_of(tool)}
        first = {name: tool for name, tool in pinned.items() if self._is_first_page((self._tools or {})[name])}
        if first:
            self.record(first.values(), shows_pages=True, keep=self._tools or ())

    def refresh(self) -> bool:
        """Reads the file again if it is another one by now; whether it was. Of a file that can't be read the log
        tells, and what was pinned stays."""
        if _stamp_of(self.path) == self._stamp:
            return False
        try:
            self._load()
        except ValueError as error:
            log.error("%s; what was pinned before stays", error)
            return False
        return True

    def record(self, tools: Iterable[Mapping[str, Any]], *, shows_pages: bool, keep: Collection[str] = ()) -> None:
        """Pins exactly these tools, in place of what was pinned but for what is to `keep`. They were listed for a
        client that `shows_pages`, or not. Raises OSError where the file can't be written: then they are pinned as
        long as this process runs."""
        kept = {name: pinned for name, pinned in (self._tools or {}).items() if name in keep}
        self._tools = kept | {
            str(tool["name"]): {
                "sha256": digest_of(tool),
                "definition": definition_of(tool),
                "pages": shows_pages,
            }
            for tool in tools
        }
        text = json.dumps({"tools": self._tools}, indent=2)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        entry = entry_at(self.path.resolve())
        found = current(entry)
        put_in_place(prepared(entry, text.encode(), found, beside(entry), 0o600), entry, found)
        self._stamp = _stamp_of(self.path)

    @staticmethod
    def _is_first_page(pinned: Mapping[str, Any]) -> bool:
        return not pinned["pages"] and "_meta" not in pinned["definition"]

    def _load(self) -> None:
        # Before the text, so that what is written meanwhile is seen by the next `refresh`.
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
        self._tools = _read(text, self.path)


def _stamp_of(path: Path) -> Stamp:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _read(text: bytes, path: Path) -> dict[str, dict[str, Any]]:
    try:
        tools = json.loads(text)["tools"]
        return {
            name: {
                "sha256": pin["sha256"],
                "definition": {**pin["definition"]},
                "pages": pin.get("pages", False) is True,
            }
            for name, pin in tools.items()
        }
    except (ValueError, LookupError, TypeError, AttributeError):
        raise ValueError(f"{path}: this is not a file of pins; remove it to pin the tools anew") from None
