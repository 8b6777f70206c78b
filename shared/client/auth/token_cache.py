"""The tokens that one client holds for a server: taken from a store, refreshed, and put back.

Others may hold the same ones, in another process or for another URL of the same resource, and an issuer that rotates
refresh tokens takes one that is used twice for a stolen one. So a refresh happens under the lock of the login, begins
with what the store has by then, and is not broken off before its answer is stored.
"""

import logging
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

import anyio

from ...auth.web import Web
from ...errors import AuthError
from .grants import Grant
from .stored_login import Kept, Login, forget, keep, read_kept
from .token_endpoint import TokenEndpoint, TokenRefused
from .tokens import Token, TokenStore

EARLY_SECONDS = 30.0
"""How long before its end a token is refreshed; one that lasts for less than two minutes, in its last quarter."""
RETRY_SECONDS = 5.0
"""After a refresh that failed for now, while the token is still good."""

_OVER = ("invalid_grant", "invalid_client", "unauthorized_client", "invalid_scope", "invalid_target")
"""What a refresh is refused with for good (RFC 6749, section 5.2; RFC 8707, section 2)."""

log = logging.getLogger("shared.client.auth")


@dataclass(frozen=True, slots=True)
class OAuthOptions:
    """What is seldom said about the tokens of a client."""

    scopes: Collection[str] = ()
    """What is asked for besides what the server wants."""
    proofs: bool | None = None
    """Whether tokens are bound to a key of the client (DPoP); None where the server says that it takes such."""
    anew: bool = False
    """Whether what was kept of an earlier login is left alone, until there is a new token in its place."""
    keeps_client: bool = False
    """Whether a client that was given is kept with its tokens, its secret among it, for programs that are not."""
    now: Callable[[], float] = time.time


class HeldTokens:
    """What is held, and where it is kept."""

    def __init__(self, url: str, grant: Grant, tokens: TokenStore, options: OAuthOptions, web: Web) -> None:
        self.login: Login | None = None
        self.token: Token | None = None
        self.asked: frozenset[str] = frozenset(options.scopes)
        """The scopes that were asked for, whatever was granted."""
        self.number = 0
        """Which token it is: another number, another token."""
        self._url = url
        self._grant = grant
        self._tokens = tokens
        self._options = options
        self._web = web
        self._renew_at: float | None = None
        self._reads_store = not options.anew
        """Not while the store has something older than what is held."""

    @property
    def is_due(self) -> bool:
        """Whether it is time to refresh the token."""
        return self.token is not None and self._renew_at is not None and self._renew_at <= self._options.now()

    @property
    def has_ended(self) -> bool:
        """Whether the token is no longer good."""
        expires = None if self.token is None else self.token.expires
        return expires is not None and expires <= self._options.now()

    def drop(self) -> None:
        """Holds nothing any more."""
        self.login = self.token = None
        self.asked = frozenset(self._options.scopes)

    async def adopt(self, wanted: frozenset[str] = frozenset()) -> bool:
        """Takes what the store has, where that is another token; whether it may be good for `wanted`. Raises
        `AuthError` where the store can't be read."""
        if not self._reads_store:
            return False
        kept = await read_kept(self._tokens, self._url, self._grant.client, self._options.now)
        if kept is None or kept.token == self.token:
            return False
        self._use(kept.login, kept.token)
        self.asked |= kept.asked
        return not self.is_due and wanted <= kept.token.scopes

    async def renew(self) -> None:
        """Takes what the store has, and refreshes what is about to end. Raises `AuthError` where that fails and the
        token has ended."""
        if await self.adopt() or not self.is_due or self.login is None:
            return
        try:
            await self.refresh(self.login)
        except AuthError as error:
            if self.has_ended:
                raise
            self._renew_at = self._options.now() + RETRY_SECONDS
            log.warning("the token is not refreshed yet: %s", error)

    async def refresh(self, login: Login) -> bool:
        """Has a new token in place of the one that is held; where there is none to be had, a new login is due. Raises
        `AuthError` where that can't be known now."""
        if self.token is None or self.token.refresh is None:
            return False
        async with self._tokens.lock(login.key):
            if await self.adopt():
                return True  # somebody else was faster
            token, held = self.token, self.login or login
            if token.refresh is None:
                return False
            found_now = replace(login, client=held.client, proofs=held.proofs or login.proofs)
            # With rotation the old token is spent as soon as the issuer has answered: whoever gave up before the
            # new one is stored would have neither.
            with anyio.CancelScope(shield=True):
                return await self._refresh(found_now, token)
        return False

    async def keep(self, login: Login, token: Token) -> None:
        """Holds a token that was obtained for `login`, and keeps it. Raises `AuthError` where the store has no room;
        it is held all the same."""
        async with self._tokens.lock(login.key):
            await self._keep(login, token)

    async def _refresh(self, login: Login, token: Token) -> bool:
        fields = {"refresh_token": token.refresh, "resource": login.found.resource}
        endpoint = TokenEndpoint(self._web, login.found.issuer, login.client, self._options.now, login.proofs)
        try:
            new = await endpoint.ask("refresh_token", fields, token.scopes)
        except TokenRefused as error:
            # `temporarily_unavailable` and the like pass: the refresh token is still good.
            if error.error not in _OVER:
                raise
            self.token = None
            self.number += 1
            await forget(self._tokens, login, token)
            return False
        # An issuer that gives out no new one goes on with the old one (RFC 6749, section 6).
        new = new if new.refresh else replace(new, refresh=token.refresh)
        try:
            await self._keep(login, new)
        except AuthError as error:
            log.warning("a new token is used and can't be kept: %s", error)
        return True

    async def _keep(self, login: Login, token: Token) -> None:
        self._use(login, token)
        # Should writing fail, the store has what is spent, and must not be adopted in place of what is held.
        self._reads_store = False
        options = self._options
        await keep(self._tokens, self._url, Kept(login, token, self.asked), self._grant, whole=options.keeps_client)
        self._reads_store = True

    def _use(self, login: Login, token: Token) -> None:
        self.login, self.token = login, token
        self.number += 1
        lasts = 0.0 if token.expires is None else max(0.0, token.expires - self._options.now())
        # Nothing is gained by giving up early a token that can't be renewed.
        early = 0.0 if token.refresh is None else min(EARLY_SECONDS, lasts / 4)
        self._renew_at = None if token.expires is None else token.expires - early
