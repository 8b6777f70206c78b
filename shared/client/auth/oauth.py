"""The credentials of a client: tokens that are obtained, stored and refreshed, and proofs that the client has the key
to which they are bound."""

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
"""Maximum number of consecutive logins whose tokens the server refuses."""


@record
class _SentState:
    """The state of the credentials at the last call to `headers` in a task. A response is about the token that was
    sent; before it arrives, another request may have replaced that token, or may have failed to."""

    sender: "OAuth"
    token_number: int
    """`CurrentToken.number` of the token that was sent."""
    attempts: int
    """The number of attempts to obtain a token before the request was sent."""
    nonce: str | None
    """The nonce in the proof that was sent."""


_sent_state: ContextVar[_SentState | None] = ContextVar("_sent_state", default=None)


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
        """`url` is the server's URL. `tokens` stores the tokens, by default only until the program ends. `web` sends
        requests to issuers; it may have custom certificates."""
        self._url = f"http{url[2:]}" if url[:2].lower() == "ws" else url
        self._grant = grant
        self._tokens = MemoryTokens() if tokens is None else tokens
        self._options = options or OAuthOptions()
        self._web = web or Web()
        self._pointer_key = pointer_key(self._url)
        self._current = CurrentToken(self._url, grant, self._tokens, self._options, self._web)
        self._bound_credential, self._bound_issuer = binding_of(grant)
        self._ungranted_scopes: frozenset[str] = frozenset()
        """Scopes that were requested and not granted. Requesting them again and again would open one login page after
        another."""
        self._consecutive_logins = 0
        self._was_refreshed = False
        self._attempts = 0
        self._last_error: AuthError | None = None
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
        """Return the headers with the token; none for another server. Raises `AuthError` if it can't be renewed."""
        if not _same_origin(self._url, url):
            return {}
        current = self._current
        if not self._is_loaded or current.is_due:
            async with self._tokens.lock(self._pointer_key):
                if not self._is_loaded or current.is_due:  # another task may have renewed it while this one waited
                    await current.renew()
                    self._is_loaded = True
        proofs = self._proofs
        _sent_state.set(
            _SentState(self, current.number, self._attempts, None if proofs is None else proofs.nonce(url))
        )
        token = current.token
        if token is None or current.has_expired:
            return {}
        if token.kind != "dpop" or proofs is None:
            return {"authorization": f"Bearer {token.access}"}
        return {"authorization": f"DPoP {token.access}", **proofs.headers(method, url, token.access)}

    async def answered(self, method: str, url: str, status: int, headers: Mapping[str, str]) -> bool:
        """Handle the response of the server. If it refuses the request, obtain the token that it requires. Returns
        True if the request should be sent again. Raises `AuthError` if the token can't be obtained."""
        if not _same_origin(self._url, url):
            return False
        proofs = self._proofs
        if proofs is not None:
            proofs.learn(url, headers)
        if status < 400:
            self._consecutive_logins, self._was_refreshed = 0, False
        if status not in (401, 403):
            return False
        # A response may have several `WWW-Authenticate` headers, each with several challenges (RFC 9110, section
        # 11.6.1).
        challenges = [value for key, value in headers.items() if key.lower() == "www-authenticate"]
        challenge = pick_challenge(", ".join(challenges) or None)
        error = challenge.parameters.get("error") if challenge else None
        sent = _sent_state.get()
        sent = (
            sent
            if sent is not None and sent.sender is self
            else _SentState(self, self._current.number, self._attempts, None)
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

    async def _obtain(self, challenge: Challenge | None, sent: _SentState, *, more_scopes: bool) -> None:
        """Obtain a token for `challenge`, with more scopes than the token that was sent if `more_scopes` is true. If
        another task has tried since the token was sent, use its outcome: the new token, or the same error."""
        async with self._tokens.lock(self._pointer_key):
            if self._attempts != sent.attempts and self._last_error is not None:
                raise self._last_error
            if self._current.number != sent.token_number:
                return
            self._last_error = None
            try:
                await self._authorize(challenge, more_scopes=more_scopes)
            except AuthError as error:
                self._last_error = error
                raise
            finally:
                self._attempts += 1

    async def _authorize(self, challenge: Challenge | None, *, more_scopes: bool) -> None:
        requested, current = frozenset(challenge.scopes if challenge else ()), self._current
        tried_scopes = (current.token.scopes if current.token else frozenset()) | self._ungranted_scopes
        if self._consecutive_logins >= MAX_CONSECUTIVE_LOGINS or (more_scopes and requested <= tried_scopes):
            for_scope = f" for the scope {escape(' '.join(sorted(requested)))[:200]}" if requested else ""
            raise AuthError(f"the server rejects every token that can be obtained{for_scope}")
        if await current.load(requested if more_scopes else frozenset()):
            return
        login = await self._find_login(challenge)
        if not (more_scopes or self._was_refreshed) and await current.refresh(login):
            # If the server refuses the new token too, a new login is needed.
            self._was_refreshed = True
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
        """Return `login` with a client that the issuer knows: the given client, its metadata document, or a stored or
        new registration. `missing_scopes` are the scopes that the current token lacks."""
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
