"""The scopes that a request requires, and the scopes that a principal can have, according to the settings or by
default.

* Needed: `NAME:read`, with the name of the server, for a tool that only reads, a resource or a prompt; `NAME:write`
  for any other tool, and for everything else.
* Implied: `X:write` includes `X:read`, `X:*` includes all of X, and `*` includes everything.

The rules of an operator have two parts: other scopes that an object requires, and the maximum scopes that a principal
can have. An object that a principal could never use does not exist for it; if a further scope would allow it, the
refusal names that scope.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from functools import lru_cache
from posixpath import normpath
from typing import Any, Protocol
from urllib.parse import unquote

from ..errors import InsufficientScope
from ..protocol.identity import Principal
from ..protocol.records import record

ALL_OTHERS = "*"
"""The name, in the rules, of all principals without an entry."""

OPERATOR = "operator"
"""The scope of a token that shows the state of all clients."""

_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
_READ, _WRITE = ":read", ":write"


class ScopedTool(Protocol):
    """The declaration of the scopes of a tool."""

    @property
    def read_only(self) -> bool:
        """True if the tool changes nothing."""

    @property
    def scopes(self) -> Collection[str] | None:
        """The scopes that the tool's author declared; None for the scopes that follow from the other options."""


@record
class Entitlement:
    """The rights that the operator grants one principal."""

    ceilings: tuple[frozenset[str], ...] = ()
    """The maximum scopes that the principal can have, whatever its token says: each set must allow a request."""
    settings: Any = None
    """The settings under which the principal is served; None for the general settings."""


@record
class Rules:
    """The operator's rules for one server."""

    scopes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The scopes needed by `TOOL`, `resource:SCHEME`, `resource:PREFIX` of URIs, and `prompt:NAME`."""
    principals: Mapping[str, Entitlement] = field(default_factory=dict)
    """The entitlements of principals, by their names; `*` means all other principals."""

    def __bool__(self) -> bool:
        return bool(self.scopes or self.principals)

    @property
    def narrowed(self) -> dict[str, Any]:
        """The settings of all principals with an entry, None for the general settings; empty if all are None."""
        settings = {name: entitlement.settings for name, entitlement in self.principals.items()}
        return settings if any(settings.values()) else {}


class Policy:
    """The scopes that the server called `server` requires, and the principals that can have them."""

    def __init__(self, server: str, rules: Rules | None = None) -> None:
        self.server = server
        self.rules = rules or Rules()
        self.read_scopes = frozenset({server + _READ})
        """The scopes that most clients should request at first."""
        self._write_scopes = frozenset({server + _WRITE})
        prefixes = [key.removeprefix("resource:") for key in self.rules.scopes if key.startswith("resource:")]
        self._prefixes = sorted(prefixes, key=len, reverse=True)

    # Needed scopes

    def scopes_of_tool(self, name: str, tool: ScopedTool | None) -> frozenset[str]:
        """Return the scopes that a call of the tool requires. For a tool that is not declared here, only the name is
        known."""
        scopes = self.rules.scopes.get(name)
        if scopes is not None:
            return scopes
        if tool is not None and tool.scopes is not None:
            return frozenset(tool.scopes)
        return self.read_scopes if tool is not None and tool.read_only else self._write_scopes

    def scopes_of_resource(self, uri: str) -> frozenset[str]:
        """Return the scopes needed to read the resource at `uri`, or to be notified of its changes. If the URI has
        several spellings, return all scopes that any of them needs."""
        # A rule for `file:///secret/` has to apply to `file:///%73ecret/` and to `file:///a/../secret/`, as the
        # reader may resolve them.
        decoded = unquote(uri)
        return self._scopes_of_uri(uri) | self._scopes_of_uri(decoded) | self._scopes_of_uri(_normalize(decoded))

    def _scopes_of_uri(self, uri: str) -> frozenset[str]:
        scheme, colon, rest = uri.partition(":")
        uri = scheme.lower() + colon + rest
        for prefix in self._prefixes:
            if uri.startswith(prefix if ":" in prefix else f"{prefix}:"):
                return self.rules.scopes[f"resource:{prefix}"]
        return self.read_scopes

    def scopes_of_prompt(self, name: str) -> frozenset[str]:
        """Return the scopes needed to get the prompt, or to complete its arguments."""
        return self.rules.scopes.get(f"prompt:{name}", self.read_scopes)

    @property
    def other_scopes(self) -> frozenset[str]:
        """The scopes needed by every method outside the protocol."""
        return self._write_scopes

    def all_scopes(self, tools: Iterable[tuple[str, ScopedTool]]) -> list[str]:
        """Return all scopes that this server requires anywhere, given the declared `tools`."""
        needed = [self.read_scopes, *self.rules.scopes.values(), *(self.scopes_of_tool(*tool) for tool in tools)]
        return sorted(frozenset().union(*needed))

    # Scopes of principals

    def entitlement(self, principal: Principal | None) -> Entitlement | None:
        """Return the entitlement of `principal` by the rules; None without rules. An anonymous sender is treated like
        all others."""
        principals = self.rules.principals
        if not principals:
            return None
        own = principals.get(principal.name) if principal is not None and principal.name else None
        return own or principals.get(ALL_OTHERS)

    def restricts(self, principal: Principal | None) -> bool:
        """Return True if `principal` is restricted in any way."""
        return bool(self.rules.principals) or (principal is not None and principal.scopes is not None)

    def allows(self, principal: Principal | None, needed: Collection[str]) -> bool:
        """Return True if `principal` could make a request that needs these scopes, with the best token that it can
        get."""
        entitlement = self.entitlement(principal)
        # Each ceiling must allow the request alone, since a scope that one ceiling lacks can't come from another.
        return entitlement is None or all(grants(ceiling, needed) for ceiling in entitlement.ceilings)

    def require(self, principal: Principal | None, needed: Collection[str]) -> None:
        """Raise InsufficientScope, which names all required scopes, if the token of `principal` does not suffice."""
        if principal is not None and principal.scopes is not None and not grants(principal.scopes, needed):
            raise InsufficientScope(needed)


def grants(owned: Collection[str], needed: Iterable[str]) -> bool:
    """Return True if the scopes `owned` include all that are `needed`."""
    for scope in needed:
        if scope not in owned and not any(sufficient in owned for sufficient in _list_sufficient(scope)):
            return False
    return True


@lru_cache(1_024)  # each call checks scopes, of which a server has few
def _list_sufficient(scope: str) -> list[str]:
    """Return all scopes that include `scope`."""
    parts = scope.split(":")
    # `*` and `files:*` include `files:read` (2026-07-28, Authorization: a broader scope counts as a narrower one).
    wider = [":".join([*parts[:count], "*"]) for count in range(len(parts))]
    return [scope, *wider, *([scope.removesuffix(_READ) + _WRITE] if scope.endswith(_READ) else [])]


def _normalize(uri: str) -> str:
    """Return the URI without `.` and `..` in its path, without empty parts, and without a host that means "no
    host"."""
    scheme, separator, rest = uri.partition("://")
    if not separator:
        return uri
    host, _, path = rest.partition("/")
    host = "" if scheme.lower() == "file" and host.lower() == "localhost" else host.lower()
    end = "/" if path.endswith(("/", "/.", "/..")) else ""
    return f"{scheme}://{host}/{normpath(f'/{path}').strip('/')}{end}"


def read_scopes(value: Any) -> frozenset[str]:
    """Return the scopes of a string, separated by blanks, or of a list. Raises ValueError for an invalid one."""
    scopes = value.split() if isinstance(value, str) else value
    if not isinstance(scopes, list | tuple | set | frozenset) or not all(isinstance(item, str) for item in scopes):
        raise ValueError("must be a scope or a list of scopes")
    for item in scopes:
        if not _SCOPE.fullmatch(item):
            raise ValueError(f"{item!r} is not a valid scope")
    return frozenset(scopes)
