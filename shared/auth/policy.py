"""Which scopes a request needs, and which a principal can have: what the settings say of that, and what holds where
they say nothing.

    needed:  a tool that only reads, a resource, a prompt: NAME:read, with the name of the server; any other tool, and
             whatever else there is: NAME:write
    implied: X:write is X:read as well, X:* is all of X, and * is everything

The rules of an operator say two things: what something needs instead, and what a principal can have at most. What
nobody who is that principal could ever do is not there for it at all; for what a further scope would allow, it is
told which.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from posixpath import normpath
from typing import Any, Protocol
from urllib.parse import unquote

from ..errors import InsufficientScope
from ..protocol.identity import Principal
from ..protocol.records import record

ALL_OTHERS = "*"
"""What the rules call all principals that they do not name."""

_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
_READ, _WRITE = ":read", ":write"


class ScopedTool(Protocol):
    """What the declaration of a tool says of its scopes."""

    @property
    def read_only(self) -> bool:
        """Whether it changes nothing."""

    @property
    def scopes(self) -> Collection[str] | None:
        """What its author wants it to need; None for what follows from the rest."""


@record
class Entitlement:
    """What the operator grants one principal."""

    ceilings: tuple[frozenset[str], ...] = ()
    """The scopes that it can have at most, whatever its token says: each of these has to allow a thing."""
    settings: Any = None
    """The settings by which it is served, in place of those of all others; None for those."""


@record
class Rules:
    """What the operator says of one server."""

    scopes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """What is needed by `TOOL`, `resource:SCHEME`, `resource:PREFIX` of URIs, and `prompt:NAME`."""
    principals: Mapping[str, Entitlement] = field(default_factory=dict)
    """What principals are entitled to, by their names; `*` is all others."""

    def __bool__(self) -> bool:
        return bool(self.scopes or self.principals)

    @property
    def narrowed(self) -> dict[str, Any]:
        """The settings of all principals with an entry, None for those of everybody; empty where these are all."""
        found = {name: one.settings for name, one in self.principals.items()}
        return found if any(found.values()) else {}


class Policy:
    """What is needed at the server called `server`, and who can have that."""

    def __init__(self, server: str, rules: Rules | None = None) -> None:
        self.server = server
        self.rules = rules or Rules()
        self.read_scopes = frozenset({server + _READ})
        """What most clients should ask for at first."""
        self._write_scopes = frozenset({server + _WRITE})
        beginnings = [key.removeprefix("resource:") for key in self.rules.scopes if key.startswith("resource:")]
        self._beginnings = sorted(beginnings, key=len, reverse=True)

    # What is needed

    def of_tool(self, name: str, tool: ScopedTool | None) -> frozenset[str]:
        """What a call of the tool needs. Of one that is not declared here nothing is known, but its name."""
        found = self.rules.scopes.get(name)
        if found is not None:
            return found
        if tool is not None and tool.scopes is not None:
            return frozenset(tool.scopes)
        return self.read_scopes if tool is not None and tool.read_only else self._write_scopes

    def of_resource(self, uri: str) -> frozenset[str]:
        """What it needs to read the resource at `uri`, or to hear of it. Where that may be written in several ways,
        it is what each of them needs."""
        # A rule for `file:///secret/` has to hold for `file:///%73ecret/` and for `file:///a/../secret/`, as the
        # reader may resolve them.
        decoded = unquote(uri)
        return self._of_uri(uri) | self._of_uri(decoded) | self._of_uri(_collapsed(decoded))

    def _of_uri(self, uri: str) -> frozenset[str]:
        scheme, colon, rest = uri.partition(":")
        uri = scheme.lower() + colon + rest
        for beginning in self._beginnings:
            if uri.startswith(beginning if ":" in beginning else f"{beginning}:"):
                return self.rules.scopes[f"resource:{beginning}"]
        return self.read_scopes

    def of_prompt(self, name: str) -> frozenset[str]:
        """What it needs to get the prompt, or to complete its arguments."""
        return self.rules.scopes.get(f"prompt:{name}", self.read_scopes)

    @property
    def of_others(self) -> frozenset[str]:
        """What every other method needs that is not the protocol's."""
        return self._write_scopes

    def supported(self, tools: Iterable[tuple[str, ScopedTool]]) -> list[str]:
        """All scopes that something needs here, where these are the tools that were declared."""
        needed = [self.read_scopes, *self.rules.scopes.values(), *(self.of_tool(*one) for one in tools)]
        return sorted(frozenset().union(*needed))

    # Who has it

    def entitlement(self, principal: Principal | None) -> Entitlement | None:
        """What the rules say of `principal`; None for nothing. Nobody in particular is one of all others."""
        principals = self.rules.principals
        if not principals:
            return None
        own = principals.get(principal.name) if principal is not None and principal.name else None
        return own or principals.get(ALL_OTHERS)

    def concerns(self, principal: Principal | None) -> bool:
        """Whether there is anything that `principal` can't do."""
        return bool(self.rules.principals) or (principal is not None and principal.scopes is not None)

    def could_have(self, principal: Principal | None, needed: Collection[str]) -> bool:
        """Whether `principal` could do what needs these scopes, with the best token that it can get."""
        entitled = self.entitlement(principal)
        # Each ceiling by itself: what one of them lacks another one can't give.
        return entitled is None or all(grants(ceiling, needed) for ceiling in entitled.ceilings)

    def require(self, principal: Principal | None, needed: Collection[str]) -> None:
        """Raises InsufficientScope, which names all that is needed, where the token of `principal` is not enough."""
        if principal is not None and principal.scopes is not None and not grants(principal.scopes, needed):
            raise InsufficientScope(needed)


def grants(held: Collection[str], needed: Iterable[str]) -> bool:
    """Whether who holds the scopes `held` has all that are `needed`."""
    return all(any(one in held for one in _enough(scope)) for scope in needed)


def _enough(scope: str) -> list[str]:
    """The scopes of which each is enough for `scope`."""
    parts = scope.split(":")
    # `files:read` is had by `*` and by `files:*` (2026-07-28, Authorization: a broader scope counts as a narrower
    # one).
    wider = [":".join([*parts[:count], "*"]) for count in range(len(parts))]
    return [scope, *wider, *([scope.removesuffix(_READ) + _WRITE] if scope.endswith(_READ) else [])]


def _collapsed(uri: str) -> str:
    """The URI without `.` and `..` in its path, without empty parts, and without a host that means none."""
    scheme, there, rest = uri.partition("://")
    if not there:
        return uri
    host, _, path = rest.partition("/")
    host = "" if scheme.lower() == "file" and host.lower() == "localhost" else host.lower()
    end = "/" if path.endswith(("/", "/.", "/..")) else ""
    return f"{scheme}://{host}/{normpath(f'/{path}').strip('/')}{end}"


def read_scopes(value: Any) -> frozenset[str]:
    """The scopes of a text, with blanks between them, or of a list. Raises ValueError for what is none."""
    found = value.split() if isinstance(value, str) else value
    if not isinstance(found, list | tuple | set | frozenset) or not all(isinstance(one, str) for one in found):
        raise ValueError("has to be a scope, or a list of scopes")
    for one in found:
        if not _SCOPE.fullmatch(one):
            raise ValueError(f"{one!r} is not a valid scope")
    return frozenset(found)
