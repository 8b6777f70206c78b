"""Tokens, and the seam to where they are kept."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio

from ...errors import AuthError

MAX_TIME = 1e11
"""Seconds since 1970 after which no token ends: in the year 5138."""

Key = tuple[str, str]
"""An issuer and a resource, as they name themselves. What an issuer knows the client by stands at an empty resource,
and at an empty issuer who was asked last for tokens of a URL."""


class TokenStore(Protocol):
    """Keeps tokens and what belongs to them as JSON. Each method may raise `AuthError` where it can't."""

    async def get(self, key: Key) -> Mapping[str, Any] | None:
        """What was put there last."""

    async def put(self, key: Key, value: Mapping[str, Any]) -> None:
        """Keeps `value`, all of it or, where that fails, what was there."""

    async def delete(self, key: Key) -> None:
        """Forgets it, also where there is none."""

    def lock(self, key: Key) -> AbstractAsyncContextManager[None]:
        """Held by one at a time, whatever process it is in."""


class MemoryTokens:
    """A `TokenStore` that ends with the program."""

    def __init__(self) -> None:
        self._values: dict[Key, Mapping[str, Any]] = {}
        self._locks: dict[Key, anyio.Lock] = {}

    async def get(self, key: Key) -> Mapping[str, Any] | None:
        """What was put there last."""
        return self._values.get(key)

    async def put(self, key: Key, value: Mapping[str, Any]) -> None:
        """Keeps `value`."""
        self._values[key] = dict(value)

    async def delete(self, key: Key) -> None:
        """Forgets it."""
        self._values.pop(key, None)

    @asynccontextmanager
    async def lock(self, key: Key) -> AsyncIterator[None]:
        """Held by one at a time."""
        async with self._locks.setdefault(key, anyio.Lock()):
            yield


@dataclass(frozen=True, slots=True)
class Token:
    """What a token endpoint has issued. It is shown without its secrets."""

    access: str = field(repr=False)
    kind: str = "bearer"
    """In small letters: `bearer` or `dpop`."""
    scopes: frozenset[str] = frozenset()
    """What was asked for, or what was granted where the server says so."""
    expires: float | None = None
    """In seconds since 1970; None where nobody said."""
    refresh: str | None = field(default=None, repr=False)

    def to_json(self) -> dict[str, Any]:
        """As a store keeps it."""
        told = {"expires": self.expires, "refresh_token": self.refresh}
        return {
            "access_token": self.access,
            "token_type": self.kind,
            "scope": " ".join(sorted(self.scopes)),
            **{name: value for name, value in told.items() if value is not None},
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Token":
        """The token that a store kept. Raises `AuthError` for what is none."""
        access, kind, scope = value.get("access_token"), value.get("token_type"), value.get("scope", "")
        expires, refresh = value.get("expires"), value.get("refresh_token")
        is_whole = isinstance(access, str) and isinstance(kind, str) and isinstance(scope, str)
        if not is_whole or not isinstance(refresh, str | None):
            raise AuthError("the stored tokens can't be read; log out and in again")
        is_time = isinstance(expires, int | float) and 0 <= expires < MAX_TIME
        return cls(
            str(access), str(kind), frozenset(scope.split()), float(expires or 0) if is_time else None, refresh
        )
