"""The credentials of a client: tokens that are obtained, stored, refreshed, and proved to be the client's own."""

from collections.abc import Mapping
from contextvars import ContextVar
from urllib.parse import urlsplit

from ...auth.metadata import canonical, covers
from ...auth.web import Web
from ...errors import AuthError
from ...protocol.records import record
from ...text import escape
from .challenges import Challenge, pick_challenge
from .discovery import discover
from .grants import AuthorizationCode, Grant, TokenRequest, binding_of
from .proofs import Proofs
from .registration import ClientInformation, register
from .stored_login import Login, bound_issuer, pointer_key, registration_key
from .token_cache import CurrentToken, OAuthOptions
from .token_endpoint import TokenEndpoint, TokenRefused
from .tokens import MemoryTokens, TokenStore

__all__ = ["OAuth", "OAuthOptions"]

MAX_CONSECUTIVE_LOGINS = 3
"""Maximum number of logins in a row whose tokens the server refuses."""


@record
class _Sent:
    """The token state at the last `headers` call of a task. An answer concerns the token that was sent, which another
    request may have replaced since, or failed to replace."""

    sender: "OAuth"
    token_number: int
    """`CurrentToken.number` of the token that was sent."""
    attempts: int
    """The number of logins that had been attempted."""
    nonce: str | None


_sent: ContextVar[_Sent | None] = ContextVar("_sent", default=None)


class OAuth:
    """The `Credentials` of the client of one server. Any number of requests may use them at once: one login or
    refresh serves them all."""

    def __init__(
        self,
        url: str,
        grant: Grant,
        *,
        tokens: TokenStore | None = None,
        options: OAuthOptions | None = None,
        web: Web | None = None,
    ) -> None:
        """`url` is the server's URL. `tokens` is the store; the default lasts until the program ends. `web` allows
        custom certificates."""
        self._url = f"http{url[2:]}" if url[:2].lower() == "ws" else url
        self._grant = grant
        self._tokens = MemoryTokens() if tokens is None else tokens
        self._options = options or OAuthOptions()
        self._web = web or Web()
        self._pointer = pointer_key(self._url)
        self._current = CurrentToken(self._url, grant, self._tokens, self._options, self._web)
        self._bound_credential, self._bound_issuer = binding_of(grant)
        self._ungranted_scopes: frozenset[str] = frozenset()
        """Scopes that were requested and not granted: another request for them would open one browser after
        another."""
        self._consecutive_logins = 0
        self._has_refreshed = False
        self._attempts = 0
        self._failure: AuthError | None = None
        self._is_loaded = False

    @property
    def has_token(self) -> bool:
        """True if there is a token, obtained or loaded from the store."""
        return self._current.token is not None

    @property
    def may_wait_for_person(self) -> bool:
        """True if a request may have to wait until someone has logged in."""
        return self._grant.redirect is not None

    async def headers(self, method: str, url: str) -> Mapping[str, str]:
        """Return the headers with the token, for this server only. Raises `AuthError` if an expired token can't be
        renewed."""
        if not _same_origin(self._url, url):
            return {}
        current = self._current
        if not self._is_loaded or current.is_due:
            async with self._tokens.lock(self._pointer):
                if not self._is_loaded or current.is_due:  # another task may have done it while this one waited
                    await current.renew()
                    self._is_loaded = True
        proofs = self._proofs
        _sent.set(_Sent(self, current.number, self._attempts, None if proofs is None else proofs.nonce(url)))
        token = current.token
        if token is None or current.has_expired:
            return {}
        if token.kind != "dpop" or proofs is None:
            return {"authorization": f"Bearer {token.access}"}
        return {"authorization": f"DPoP {token.access}", **proofs.headers(method, url, token.access)}

    async def answered(self, method: str, url: str, status: int, headers: Mapping[str, str]) -> bool:
        """Obtain the authorization that a server requires when it refuses a request. Returns True if it was obtained
        and the request is to be sent again; raises `AuthError` if it can't be obtained."""
        if not _same_origin(self._url, url):
            return False
        proofs = self._proofs
        if proofs is not None:
            proofs.learn(url, headers)
        if status < 400:
            self._consecutive_logins, self._has_refreshed = 0, False
        if status not in (401, 403):
            return False
        # A response may have several of these headers, with one challenge or more in each (RFC 9110, section 11.6.1).
        challenges = [value for key, value in headers.items() if key.lower() == "www-authenticate"]
        challenge = pick_challenge(", ".join(challenges) or None)
        error = challenge.parameters.get("error") if challenge else None
        sent = _sent.get()
        sent = (
            sent
            if sent is not None and sent.sender is self
            else _Sent(self, self._current.number, self._attempts, None)
        )
        if error == "use_dpop_nonce" and proofs is not None and proofs.nonce(url) != sent.nonce:
            return True
        if status == 403 and error != "insufficient_scope":
            return False
        await self._obtain(challenge, sent, more_scopes=status == 403)
        return True

    @property
    def _proofs(self) -> Proofs | None:
        return None if self._current.login is None else self._current.login.proofs

    async def _obtain(self, challenge: Challenge | None, sent: _Sent, *, more_scopes: bool) -> None:
        """Obtain a token for `challenge`, with more scopes than the token that was sent if `more_scopes` is true.
        Does nothing if another task has tried since then: waiting tasks share its outcome."""
        async with self._tokens.lock(self._pointer):
            if self._attempts != sent.attempts and self._failure is not None:
                raise self._failure
            if self._current.number != sent.token_number:
                return
            self._failure = None
            try:
                await self._authorize(challenge, more_scopes=more_scopes)
            except AuthError as error:
                self._failure = error
                raise
            finally:
                self._attempts += 1

    async def _authorize(self, challenge: Challenge | None, *, more_scopes: bool) -> None:
        requested, current = frozenset(challenge.scopes if challenge else ()), self._current
        tried_scopes = (current.token.scopes if current.token else frozenset()) | self._ungranted_scopes
        if self._consecutive_logins >= MAX_CONSECUTIVE_LOGINS or (more_scopes and requested <= tried_scopes):
            for_scope = f" for the scope {escape(' '.join(sorted(requested)))[:200]}" if requested else ""
            raise AuthError(f"the server rejects every token that can be obtained{for_scope}")
        if await current.adopt(requested if more_scopes else frozenset()):
            return
        login = await self._find_login(challenge)
        if not (more_scopes or self._has_refreshed) and await current.refresh(login):
            self._has_refreshed = True  # once: if the server refuses the new token too, it requires a new login
            return
        scopes = login.discovery.choose_scopes(requested, current.requested, needs_person=self._grant.needs_person)
        missing_scopes = requested if more_scopes else frozenset()
        login = await self._add_client(login, scopes, missing_scopes)
        issuer = login.discovery.issuer
        endpoint = TokenEndpoint(self._web, issuer, login.client, self._options.now, login.proofs)
        request = TokenRequest(self._web, issuer, endpoint, login.client, login.discovery.resource, scopes)
        try:
            token = await self._grant.obtain(request)
        except TokenRefused as error:
            if error.error == "invalid_client" and self._grant.client is None:
                await self._tokens.delete(registration_key(issuer.issuer))
            raise
        self._consecutive_logins += 1
        self._ungranted_scopes = (self._ungranted_scopes | scopes) - token.scopes
        current.requested = scopes
        await current.store_login(login, token)

    async def _find_login(self, challenge: Challenge | None) -> Login:
        if self._bound_credential is not None and self._bound_issuer is None:
            self._bound_issuer = await bound_issuer(self._tokens, self._url, self._bound_credential)
        discovered = await discover(self._web, self._url, challenge, self._bound_issuer)
        key, current = (discovered.issuer.issuer, discovered.resource or canonical(self._url)), self._current
        if current.login is not None and current.login.key != key:
            current.drop()  # no credential of one issuer is presented to another
        if self._bound_credential is not None:
            self._bound_issuer = discovered.issuer.issuer
        uses_proofs = self._options.proofs
        if uses_proofs is None:
            uses_proofs = discovered.accepts_proofs or (challenge is not None and challenge.scheme == "dpop")
        client = current.login.client if current.login else None
        return Login(discovered, client, key, (self._proofs or Proofs(self._options.now)) if uses_proofs else None)

    async def _add_client(self, login: Login, scopes: frozenset[str], missing_scopes: frozenset[str]) -> Login:
        """Return `login` with the client that the issuer recognizes: the given one, its metadata document, or a
        registration, new or stored. `missing_scopes` are the scopes that the current token lacks."""
        grant, issuer = self._grant, login.discovery.issuer
        if not isinstance(grant, AuthorizationCode):
            return Login(login.discovery, grant.client, login.key, login.proofs)
        if grant.redirect is None:
            raise grant.login_required(missing_scopes)
        if grant.client is not None:
            client = grant.client
        elif grant.metadata_url is not None and issuer.client_id_metadata_document_supported:
            client = ClientInformation(grant.metadata_url, method="none")
        else:
            key, uris = registration_key(issuer.issuer), list(grant.redirect.redirect_uris)
            stored = await self._tokens.get(key)
            if stored is not None and stored.get("redirect_uris") == uris:
                client = ClientInformation.from_json(stored, issuer.issuer)
            else:
                client = await register(self._web, issuer, uris, grant.name, sorted(scopes))
                await self._tokens.put(key, {**client.to_json(), "redirect_uris": uris})
        return Login(login.discovery, client, login.key, login.proofs)


def _same_origin(url: str, other: str) -> bool:
    root = urlsplit(canonical(url))
    return covers(f"{root.scheme}://{root.netloc}", other)
