"""`Rules`: an operator's rules for the tools of a server, the size of its results and the duration of its calls.

    Rules(allow=("read_*",), deny=("read_secrets",), rename={"read_file": "read"}, describe={"read_file": "Reads."})

All names in the rules are the server's own, except the new names in `rename`. Clients know a renamed tool only by its
new name. If the server has another tool with that name, the other tool is withheld, since clients could not
distinguish them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from fnmatch import fnmatchcase
from typing import Any

from shared.protocol.records import record

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")


@record
class Rules:
    """The rules for one server. Raises ValueError with a one-line message for invalid or contradictory rules."""

    allow: tuple[str, ...] | None = None
    """Names or patterns such as `read_*` of the allowed tools; None for all."""
    deny: tuple[str, ...] = ()
    """Names or patterns of denied tools, even if `allow` matches."""
    rename: Mapping[str, str] = field(default_factory=dict)
    """New names, keyed by the name that the server gives the tool."""
    describe: Mapping[str, str] = field(default_factory=dict)
    """Descriptions that replace the server's own, keyed by the name that the server gives the tool."""
    result_bytes: int | None = None
    """Maximum size of a result, in bytes of JSON; None if only the gateway's limit applies."""
    seconds: float | None = None
    """Maximum time of a call, without the time that the user takes to answer; None if only the
    gateway's limit applies. It no longer applies once the call becomes a task, which has its own limit."""

    def __post_init__(self) -> None:
        old_names: dict[str, str] = {}
        for old, new in self.rename.items():
            if not _NAME.fullmatch(new):
                raise ValueError(
                    f"rename: {new!r} is not a valid name: it must have 1 to 128 of the characters A-Z a-z 0-9 _ . -"
                )
            if new in old_names:
                raise ValueError(f"rename: {old_names[new]!r} and {old!r} can't both be {new!r}")
            old_names[new] = old
        for name, text in self.describe.items():
            if not text.strip():
                raise ValueError(
                    f"describe: {name!r} needs a description, which is all that the model knows about it"
                )
        for what, limit in (("result_bytes", self.result_bytes), ("seconds", self.seconds)):
            if limit is not None and limit <= 0:
                raise ValueError(f"{what} must be greater than 0")

    @property
    def affect_tools(self) -> bool:
        """True if the rules change which tools clients see, or their names or descriptions."""
        return self.allow is not None or bool(self.deny or self.rename or self.describe)

    def allows(self, name: str) -> bool:
        """Return True if the server's tool `name` is allowed."""
        return not _matches(name, self.deny) and (self.allow is None or _matches(name, self.allow))

    def shown_name(self, name: str) -> str | None:
        """Return the name under which clients know the server's tool `name`; None if it is hidden."""
        if not self.allows(name):
            return None
        return self.rename.get(name) or (None if self.is_replaced(name) else name)

    def original_name(self, shown_name: str) -> str | None:
        """Return the server's name of the tool that clients see as `shown_name`; None if they see no such tool."""
        for old, new in self.rename.items():
            if new == shown_name and self.allows(old):
                return old
        return shown_name if self.allows(shown_name) and shown_name not in self.rename else None

    def is_replaced(self, name: str) -> bool:
        """Return True if another tool was renamed to `name`, so that the tool of that name is hidden."""
        return name not in self.rename and any(new == name and self.allows(old) for old, new in self.rename.items())

    def apply(self, tool: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return a tool of the server's list with the name and description that clients see; None if it is hidden."""
        name = tool["name"]
        shown_name = self.shown_name(name)
        if shown_name is None:
            return None
        described = {"description": self.describe[name]} if name in self.describe else {}
        return {**tool, "name": shown_name, **described}

    def find_unused(self, names: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield the rule and the name or pattern for each that matches none of `names`, the server's tools."""
        existing = list(names)
        for rule, patterns in (("allow", self.allow or ()), ("deny", self.deny)):
            yield from (
                (rule, pattern) for pattern in patterns if not any(fnmatchcase(name, pattern) for name in existing)
            )
        for rule, mapping in (("rename", self.rename), ("describe", self.describe)):
            yield from ((rule, name) for name in mapping if name not in existing or not self.allows(name))


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
