"""Tokens, the interface of a store for them, and a store in memory."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio

from ...errors import AuthError

MAX_TIME = 1e11
"""The latest valid expiry of a token, in seconds since 1970: a time in the year 5138."""

Key = tuple[str, str]
"""The key of a stored value: the identifiers of an issuer and of a resource. If the resource is empty, the value is
the client's registration with the issuer; if the issuer is empty, the value names the last issuer of tokens for the
URL in place of the resource."""


class TokenStore(Protocol):
    """A store of tokens and related data as JSON. Each method may raise `AuthError`."""

    async def get(self, key: Key) -> Mapping[str, Any] | None:
        """Return the stored value."""

    async def put(self, key: Key, value: Mapping[str, Any]) -> None:
        """Store `value`. If that fails, the previous value remains."""

    async def delete(self, key: Key) -> None:
        """Delete the value, if there is one."""

    def lock(self, key: Key) -> AbstractAsyncContextManager[None]:
        """Return a lock that only one holder, in any process, can acquire at a time."""


class MemoryTokens:
    """A `TokenStore` in memory, which lasts until the program ends."""

    def __init__(self) -> None:
        self._values: dict[Key, Mapping[str, Any]] = {}
        self._locks: dict[Key, anyio.Lock] = {}

    async def get(self, key: Key) -> Mapping[str, Any] | None:
        """Return the stored value."""
        return self._values.get(key)

    async def put(self, key: Key, value: Mapping[str, Any]) -> None:
        """Store `value`."""
        self._values[key] = dict(value)

    async def delete(self, key: Key) -> None:
        """Delete the value, if there is one."""
        self._values.pop(key, None)

    @asynccontextmanager
    async def lock(self, key: Key) -> AsyncIterator[None]:
        """Hold the lock of `key`, one holder at a time."""
        async with self._locks.setdefault(key, anyio.Lock()):
            yield


@dataclass(frozen=True, slots=True)
class Token:
    """A token from a token endpoint. Its `repr` contains no secrets."""

    access: str = field(repr=False)
    kind: str = "bearer"
    """The type of the token in lower case: `bearer` or `dpop`."""
    scopes: frozenset[str] = frozenset()
    """The granted scopes, if the issuer names them; otherwise the requested scopes."""
    expires: float | None = None
    """The expiry in seconds since 1970; None if it is unknown."""
    refresh: str | None = field(default=None, repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return the token in the form in which it is stored."""
        optional = {"expires": self.expires, "refresh_token": self.refresh}
        return {
            "access_token": self.access,
            "token_type": self.kind,
            "scope": " ".join(sorted(self.scopes)),
            **{name: value for name, value in optional.items() if value is not None},
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Token":
        """Return the token from its stored form. Raises `AuthError` if `value` is invalid."""
        access, kind, scope = value.get("access_token"), value.get("token_type"), value.get("scope", "")
        expires, refresh = value.get("expires"), value.get("refresh_token")
        is_valid = isinstance(access, str) and isinstance(kind, str) and isinstance(scope, str)
        if not is_valid or not isinstance(refresh, str | None):
            raise AuthError("the stored tokens can't be read; log out and in again")
        is_time = isinstance(expires, int | float) and 0 <= expires < MAX_TIME
        return cls(
            str(access), str(kind), frozenset(scope.split()), float(expires or 0) if is_time else None, refresh
        )
