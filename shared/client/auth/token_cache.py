"""The tokens of one client for a server: loaded from a store, refreshed, and stored again.

Other clients may use the same tokens, in another process or for another URL of the same resource. An issuer that
rotates refresh tokens considers one that is used twice as stolen. So a refresh holds the lock of the login, first
looks for newer tokens in the store, and can't be cancelled before its result is stored.
"""

import logging
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

import anyio

from ...auth.web import Web
from ...errors import AuthError
from .grants import Grant
from .stored_login import Login, StoredLogin, delete_expired, read_login, store_login
from .token_endpoint import TokenEndpoint, TokenRefused
from .tokens import Token, TokenStore

EARLY_SECONDS = 30.0
"""Seconds before its expiry at which a token is refreshed; a token with a lifetime of less than two minutes is
refreshed when a quarter of it remains."""
RETRY_SECONDS = 5.0
"""Seconds after which a failed refresh is tried again while the token is still valid."""

_PERMANENT_ERRORS = (
    *("invalid_grant", "invalid_client", "unauthorized_client", "invalid_scope", "invalid_target"),
    "invalid_request",  # that of some issuers for an expired refresh token
)
"""The errors after which a refresh token is useless (RFC 6749, section 5.2; RFC 8707, section 2)."""

log = logging.getLogger("shared.client.auth")


@dataclass(frozen=True, slots=True)
class OAuthOptions:
    """Rarely used options for the tokens of a client."""

    scopes: Collection[str] = ()
    """Scopes to request in addition to those that the server requires."""
    proofs: bool | None = None
    """True if tokens are bound to a key of the client (DPoP); None to bind them if the server declares that it
    accepts such tokens."""
    ignores_stored: bool = False
    """True if a stored earlier login is ignored until a new token replaces it."""
    stores_client: bool = False
    """True if a client that the grant provides is stored with its tokens, including its secret, so that programs
    without these options can use the login."""
    now: Callable[[], float] = time.time


class CurrentToken:
    """The token that a client uses at the moment, with its login; it is read from a store and written to it."""

    def __init__(self, url: str, grant: Grant, tokens: TokenStore, options: OAuthOptions, web: Web) -> None:
        self.login: Login | None = None
        self.token: Token | None = None
        self.requested: frozenset[str] = frozenset(options.scopes)
        """The requested scopes, whether or not they were granted."""
        self.number = 0
        """A number that increases whenever the token changes."""
        self._url = url
        self._grant = grant
        self._tokens = tokens
        self._options = options
        self._web = web
        self._renew_at: float | None = None
        self._reads_store = not options.ignores_stored
        """False while the store contains an older token than this object."""

    @property
    def is_due(self) -> bool:
        """True if it is time to refresh the token."""
        return self.token is not None and self._renew_at is not None and self._renew_at <= self._options.now()

    @property
    def has_expired(self) -> bool:
        """True if the token has expired."""
        expires = None if self.token is None else self.token.expires
        return expires is not None and expires <= self._options.now()

    def drop(self) -> None:
        """Discard the login and the token."""
        self.login = self.token = None
        self.requested = frozenset(self._options.scopes)

    async def load(self, required: frozenset[str] = frozenset()) -> bool:
        """Use the token in the store if it differs from the current one. Returns True if that token need not be
        refreshed yet and has the scopes `required`. Raises `AuthError` if the store can't be read."""
        if not self._reads_store:
            return False
        stored = await read_login(self._tokens, self._url, self._grant.client, self._options.now)
        if stored is None or stored.token == self.token:
            return False
        self._set_current(stored.login, stored.token)
        self.requested |= stored.requested
        return not self.is_due and required <= stored.token.scopes

    async def renew(self) -> None:
        """Use the token in the store if it is newer, and refresh a token that is about to expire. Raises `AuthError`
        if that fails and the token has expired."""
        if await self.load() or not self.is_due or self.login is None:
            return
        try:
            await self.refresh(self.login)
        except AuthError as error:
            if self.has_expired:
                raise
            self._renew_at = self._options.now() + RETRY_SECONDS
            log.warning("the token can't be refreshed yet: %s", error)

    async def refresh(self, login: Login) -> bool:
        """Replace the token with a new one by means of its refresh token. Returns False if that is impossible, so
        that a new login is needed. Raises `AuthError` if the outcome is unknown."""
        if self.token is None or self.token.refresh is None:
            return False
        async with self._tokens.lock(login.key):
            if await self.load():
                return True  # another process has refreshed the token
            token, current = self.token, self.login or login
            if token.refresh is None:
                return False
            renewed_login = replace(login, client=current.client, proofs=current.proofs or login.proofs)
            # If the issuer rotates refresh tokens, the old one is invalid as soon as the issuer has answered. A
            # cancellation before the new one is stored would lose both.
            with anyio.CancelScope(shield=True):
                return await self._refresh(renewed_login, token)
        return False

    async def store_login(self, login: Login, token: Token) -> None:
        """Use and store a token that was obtained for `login`. Raises `AuthError` if the store fails; the token is
        used anyway."""
        async with self._tokens.lock(login.key):
            await self._use_and_store(login, token)

    async def _refresh(self, login: Login, token: Token) -> bool:
        fields = {"refresh_token": token.refresh, "resource": login.discovery.resource}
        endpoint = TokenEndpoint(self._web, login.discovery.issuer, login.client, self._options.now, login.proofs)
        try:
            new_token = await endpoint.request_token("refresh_token", fields, token.scopes)
        except TokenRefused as error:
            # Errors such as `temporarily_unavailable` are temporary: the refresh token is still valid.
            if error.error not in _PERMANENT_ERRORS:
                raise
            self.token = None
            self.number += 1
            await delete_expired(self._tokens, login, token)
            return False
        # Without a new refresh token in the answer, the old one remains valid (RFC 6749, section 6).
        new_token = new_token if new_token.refresh else replace(new_token, refresh=token.refresh)
        try:
            await self._use_and_store(login, new_token)
        except AuthError as error:
            log.warning("the new token is used, but can't be stored: %s", error)
        return True

    async def _use_and_store(self, login: Login, token: Token) -> None:
        self._set_current(login, token)
        # If writing fails, the store contains an outdated token, which must not replace the current one.
        self._reads_store = False
        options = self._options
        await store_login(
            self._tokens,
            self._url,
            StoredLogin(login, token, self.requested),
            self._grant,
            with_secrets=options.stores_client,
        )
        self._reads_store = True

    def _set_current(self, login: Login, token: Token) -> None:
        self.login, self.token = login, token
        self.number += 1
        lifetime = 0.0 if token.expires is None else max(0.0, token.expires - self._options.now())
        # A token that can't be refreshed is used until it expires.
        margin = 0.0 if token.refresh is None else min(EARLY_SECONDS, lifetime / 4)
        self._renew_at = None if token.expires is None else token.expires - margin
