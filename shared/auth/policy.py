"""The scopes that a request requires, and the scopes that a principal can have.

By default, a tool that only reads, a resource and a prompt require the scope `NAME:read`, where NAME is the name of
the server; any other tool, and every method outside the protocol, requires `NAME:write`. The scope `X:write` includes
`X:read`, `X:*` includes all scopes that begin with `X:`, and `*` includes all.

The operator can set other scopes for a tool, resource or prompt, and the maximum scopes that a principal can have.
What a principal can't use with its maximum scopes does not exist for it. If only its token lacks a scope, the refusal
names the required scopes.
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
"""The name in the rules that means all principals without an entry."""

OPERATOR = "operator"
"""The scope that allows an operator to see the state of all clients."""

_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
_READ, _WRITE = ":read", ":write"


class ScopedTool(Protocol):
    """A declared tool, as far as scopes depend on it."""

    @property
    def read_only(self) -> bool:
        """True if the tool changes nothing."""

    @property
    def scopes(self) -> Collection[str] | None:
        """The scopes that the author of the tool has declared; None if the default applies."""


@record
class Entitlement:
    """The rights that the operator grants one principal."""

    ceilings: tuple[frozenset[str], ...] = ()
    """Sets of maximum scopes, whatever the token grants: a request is allowed only if each of the sets allows it."""
    settings: Any = None
    """The settings with which the server runs for the principal; None for the general settings."""


@record
class Rules:
    """The operator's rules for one server."""

    scopes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The required scopes. The keys are the name of a tool, `prompt:NAME`, `resource:SCHEME`, or `resource:PREFIX`
    with the beginning of a URI."""
    principals: Mapping[str, Entitlement] = field(default_factory=dict)
    """The entitlements of principals, by their names; `*` means all other principals."""

    def __bool__(self) -> bool:
        return bool(self.scopes or self.principals)

    @property
    def narrowed_settings(self) -> dict[str, Any]:
        """The settings of each principal with an entry (None: the general ones); empty without such entries."""
        settings = {name: entitlement.settings for name, entitlement in self.principals.items()}
        return settings if any(settings.values()) else {}


class Policy:
    """The scopes that the server called `server` requires, and the principals that can have them."""

    def __init__(self, server: str, rules: Rules | None = None) -> None:
        self.server = server
        self.rules = rules or Rules()
        self.read_scopes = frozenset({server + _READ})
        """The scopes that a client should request first."""
        self._write_scopes = frozenset({server + _WRITE})
        prefixes = [key.removeprefix("resource:") for key in self.rules.scopes if key.startswith("resource:")]
        self._prefixes = sorted(prefixes, key=len, reverse=True)

    # Required scopes

    def scopes_of_tool(self, name: str, tool: ScopedTool | None) -> frozenset[str]:
        """Return the scopes that a call of the tool called `name` requires. `tool` is None if the server does not
        declare it, such as a tool of another server."""
        scopes = self.rules.scopes.get(name)
        if scopes is not None:
            return scopes
        if tool is not None and tool.scopes is not None:
            return frozenset(tool.scopes)
        return self.read_scopes if tool is not None and tool.read_only else self._write_scopes

    def scopes_of_resource(self, uri: str) -> frozenset[str]:
        """Return the scopes required to read the resource at `uri`, or to be notified of its changes. They include
        those that rules require for other spellings of the URI."""
        # A rule for `file:///secret/` must also apply to `file:///%73ecret/` and `file:///a/../secret/`, since the
        # server may read the same file for these.
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
        """Return the scopes required to get the prompt called `name`, or to complete its arguments."""
        return self.rules.scopes.get(f"prompt:{name}", self.read_scopes)

    @property
    def other_scopes(self) -> frozenset[str]:
        """The scopes that methods outside the protocol require."""
        return self._write_scopes

    def all_scopes(self, tools: Iterable[tuple[str, ScopedTool]]) -> list[str]:
        """Return all scopes that any request to this server requires. `tools` are the declared ones."""
        needed = [self.read_scopes, *self.rules.scopes.values(), *(self.scopes_of_tool(*tool) for tool in tools)]
        return sorted(frozenset().union(*needed))

    # Scopes of principals

    def entitlement(self, principal: Principal | None) -> Entitlement | None:
        """Return the entitlement of `principal` in the rules; None if the rules contain no principals. An anonymous
        sender has the entitlement of all other principals."""
        principals = self.rules.principals
        if not principals:
            return None
        own = principals.get(principal.name) if principal is not None and principal.name else None
        return own or principals.get(ALL_OTHERS)

    def restricts(self, principal: Principal | None) -> bool:
        """Return True if rules or the scopes of its token may restrict `principal`."""
        return bool(self.rules.principals) or (principal is not None and principal.scopes is not None)

    def allows(self, principal: Principal | None, needed: Collection[str]) -> bool:
        """Return True if the rules allow `principal` to make a request that requires the scopes `needed`, if its
        token grants them."""
        entitlement = self.entitlement(principal)
        # Each set must allow the request by itself: a scope that one set lacks can't come from another one.
        return entitlement is None or all(grants(ceiling, needed) for ceiling in entitlement.ceilings)

    def require(self, principal: Principal | None, needed: Collection[str]) -> None:
        """Raise InsufficientScope, naming the scopes `needed`, if the token of `principal` does not grant them."""
        if principal is not None and principal.scopes is not None and not grants(principal.scopes, needed):
            raise InsufficientScope(needed)


def grants(owned: Collection[str], needed: Iterable[str]) -> bool:
    """Return True if the scopes `owned` include all scopes that are `needed`."""
    for scope in needed:
        if scope not in owned and not any(sufficient in owned for sufficient in _list_sufficient(scope)):
            return False
    return True


@lru_cache(1_024)  # each call checks scopes, of which a server has few
def _list_sufficient(scope: str) -> list[str]:
    """Return `scope`, and all broader scopes that include it."""
    parts = scope.split(":")
    # `*` and `files:*` include `files:read` (2026-07-28, Authorization: a broader scope counts as a narrower one).
    wider = [":".join([*parts[:count], "*"]) for count in range(len(parts))]
    return [scope, *wider, *([scope.removesuffix(_READ) + _WRITE] if scope.endswith(_READ) else [])]


def _normalize(uri: str) -> str:
    """Return the URI with its path normalized: without `.`, `..` and empty segments. In a file URI, the host
    `localhost` is removed too."""
    scheme, separator, rest = uri.partition("://")
    if not separator:
        return uri
    host, _, path = rest.partition("/")
    host = "" if scheme.lower() == "file" and host.lower() == "localhost" else host.lower()
    end = "/" if path.endswith(("/", "/.", "/..")) else ""
    return f"{scheme}://{host}/{normpath(f'/{path}').strip('/')}{end}"


def parse_scopes(value: Any) -> frozenset[str]:
    """Return the scopes in `value`: a string with scopes separated by spaces, or a list. Raises ValueError."""
    scopes = value.split() if isinstance(value, str) else value
    if not isinstance(scopes, list | tuple | set | frozenset) or not all(isinstance(item, str) for item in scopes):
        raise ValueError("must be a scope or a list of scopes")
    for item in scopes:
        if not _SCOPE.fullmatch(item):
            raise ValueError(f"{item!r} is not a valid scope")
    return frozenset(scopes)
