"""`Rules`: what an operator says of the tools of a server, and of the size and time of its answers.

    Rules(allow=("read_*",), deny=("read_secrets",), rename={"read_file": "read"}, describe={"read_file": "Reads."})

All names in them are the server's own. A renamed tool is known by its new name only, and a tool of the server that
has that name itself can't be told from it, so it is withheld.
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
    """The rules for one server. Raises ValueError, in one line, for rules that can't hold together."""

    allow: tuple[str, ...] | None = None
    """Names or patterns such as `read_*` of the tools that there are; None for all."""
    deny: tuple[str, ...] = ()
    """Names or patterns of tools that there are not, whatever `allow` says."""
    rename: Mapping[str, str] = field(default_factory=dict)
    """By the name of a tool its new one."""
    describe: Mapping[str, str] = field(default_factory=dict)
    """By the name of a tool the description that takes the place of its own."""
    result_bytes: int | None = None
    """The most that a result may have as JSON, or None for no limit of its own."""
    seconds: float | None = None
    """The most that a call may take besides what the user takes to answer, or None for no limit of its own. It ends
    where the call becomes a task, which has a time of its own."""

    def __post_init__(self) -> None:
        taken: dict[str, str] = {}
        for old, new in self.rename.items():
            if not _NAME.fullmatch(new):
                raise ValueError(
                    f"rename: {new!r} is not a valid name: it has 1 to 128 of the characters A-Z a-z 0-9 _ . -"
                )
            if new in taken:
                raise ValueError(f"rename: {taken[new]!r} and {old!r} can't both be {new!r}")
            taken[new] = old
        for name, text in self.describe.items():
            if not text.strip():
                raise ValueError(f"describe: {name!r} needs a text: it is all the model knows of it")
        for what, limit in (("result_bytes", self.result_bytes), ("seconds", self.seconds)):
            if limit is not None and limit <= 0:
                raise ValueError(f"{what} has to be more than 0")

    @property
    def concern_tools(self) -> bool:
        """Whether they change anything of the tools."""
        return self.allow is not None or bool(self.deny or self.rename or self.describe)

    def allows(self, name: str) -> bool:
        """Whether the server's tool `name` is one that there is."""
        return not _matches(name, self.deny) and (self.allow is None or _matches(name, self.allow))

    def shown(self, name: str) -> str | None:
        """How clients know the server's tool `name`; None where they don't."""
        if not self.allows(name):
            return None
        return self.rename.get(name) or (None if self.takes(name) else name)

    def meant(self, shown: str) -> str | None:
        """The server's tool that clients know as `shown`; None where there is none."""
        for old, new in self.rename.items():
            if new == shown and self.allows(old):
                return old
        return shown if self.allows(shown) and shown not in self.rename else None

    def takes(self, name: str) -> bool:
        """Whether `name` was given to another tool, and the one that has it by itself keeps none."""
        return name not in self.rename and any(new == name and self.allows(old) for old, new in self.rename.items())

    def applied(self, tool: Mapping[str, Any]) -> dict[str, Any] | None:
        """A tool as the server lists it, with the name and the description that clients are shown; None where they
        are shown nothing of it."""
        name = tool["name"]
        shown = self.shown(name)
        if shown is None:
            return None
        described = {"description": self.describe[name]} if name in self.describe else {}
        return {**tool, "name": shown, **described}

    def idle(self, names: Iterable[str]) -> Iterator[tuple[str, str]]:
        """What does nothing at a server whose tools have these `names`: the rule, and the name or pattern in it."""
        known = list(names)
        for rule, patterns in (("allow", self.allow or ()), ("deny", self.deny)):
            yield from ((rule, one) for one in patterns if not any(fnmatchcase(name, one) for name in known))
        for rule, mapping in (("rename", self.rename), ("describe", self.describe)):
            yield from ((rule, one) for one in mapping if one not in known or not self.allows(one))


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
