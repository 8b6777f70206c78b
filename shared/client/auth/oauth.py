"""The credentials of a client: tokens that it obtains, keeps, refreshes and proves to have."""

from collections.abc import Mapping
from contextvars import ContextVar
from urllib.parse import urlsplit

from ...auth.metadata import IssuerMetadata, canonical, covers
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
from .token_cache import HeldTokens, OAuthOptions
from .token_endpoint import TokenEndpoint, TokenRefused
from .tokens import MemoryTokens, TokenStore

__all__ = ["OAuth", "OAuthOptions"]

MAX_OBTAINED = 3
"""How many tokens in a row the server may refuse."""


@record
class _Sent:
    """What the headers had that a task has asked for last: an answer is judged by the token that was sent, which
    another request may have replaced meanwhile, or failed to."""

    by: "OAuth"
    number: int
    """Of the token."""
    attempts: int
    """How many logins had been tried."""
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
        """`url` is that of the server, `tokens` where they are kept: until the program ends where that is not said.
        `web` is for certificates of one's own."""
        self._url = _as_http(url)
        self._grant = grant
        self._tokens = MemoryTokens() if tokens is None else tokens
        self._options = options or OAuthOptions()
        self._web = web or Web()
        self._pointer = pointer_key(self._url)
        self._held = HeldTokens(self._url, grant, self._tokens, self._options, self._web)
        self._binding, self._bound = binding_of(grant)
        self._ungranted: frozenset[str] = frozenset()
        """What was asked for and not granted: to ask again would open one browser after the other."""
        self._obtained = 0
        self._has_refreshed = False
        self._attempts = 0
        self._failure: AuthError | None = None
        self._is_loaded = False

    @property
    def has_token(self) -> bool:
        """Whether there is a token, which was obtained or kept."""
        return self._held.token is not None

    @property
    def may_wait_for_person(self) -> bool:
        """Whether a request may have to wait until somebody has logged in."""
        return self._grant.redirect is not None

    async def headers(self, method: str, url: str) -> Mapping[str, str]:
        """The token, for this server alone. Raises `AuthError` where one that has ended can't be had anew."""
        if not _same_origin(self._url, url):
            return {}
        held = self._held
        if not self._is_loaded or held.is_due:
            async with self._tokens.lock(self._pointer):
                if not self._is_loaded or held.is_due:  # who waited finds it done
                    await held.renew()
                    self._is_loaded = True
        proofs = self._proofs
        _sent.set(_Sent(self, held.number, self._attempts, None if proofs is None else proofs.nonce(url)))
        token = held.token
        if token is None or held.has_ended:
            return {}
        if token.kind != "dpop" or proofs is None:
            return {"authorization": f"Bearer {token.access}"}
        return {"authorization": f"DPoP {token.access}", **proofs.headers(method, url, token.access)}

    async def answered(self, method: str, url: str, status: int, headers: Mapping[str, str]) -> bool:
        """Obtains what a server that refuses says it wants; whether that was had. Raises `AuthError` where not."""
        if not _same_origin(self._url, url):
            return False
        proofs = self._proofs
        if proofs is not None:
            proofs.learn(url, headers)
        if status < 400:
            self._obtained, self._has_refreshed = 0, False
        if status not in (401, 403):
            return False
        # All headers of that name, as one.
        found = [value for key, value in headers.items() if key.lower() == "www-authenticate"]
        challenge = pick_challenge(", ".join(found) or None)
        error = challenge.parameters.get("error") if challenge else None
        sent = _sent.get()
        sent = sent if sent is not None and sent.by is self else _Sent(self, self._held.number, self._attempts, None)
        if error == "use_dpop_nonce" and proofs is not None and proofs.nonce(url) != sent.nonce:
            return True
        if status == 403 and error != "insufficient_scope":
            return False
        await self._obtain(challenge, sent, more=status == 403)
        return True

    @property
    def _proofs(self) -> Proofs | None:
        return None if self._held.login is None else self._held.login.proofs

    async def _obtain(self, challenge: Challenge | None, sent: _Sent, *, more: bool) -> None:
        """Has a token for `challenge`, with `more` scopes than the one that was sent, where nobody has tried it since
        then: those who waited meanwhile share what became of it."""
        async with self._tokens.lock(self._pointer):
            if self._attempts != sent.attempts and self._failure is not None:
                raise self._failure
            if self._held.number != sent.number:
                return
            self._failure = None
            try:
                await self._authorize(challenge, more=more)
            except AuthError as error:
                self._failure = error
                raise
            finally:
                self._attempts += 1

    async def _authorize(self, challenge: Challenge | None, *, more: bool) -> None:
        wanted, held = frozenset(challenge.scopes if challenge else ()), self._held
        had = (held.token.scopes if held.token else frozenset()) | self._ungranted
        if self._obtained >= MAX_OBTAINED or (more and wanted <= had):
            named = f" for the scope {escape(' '.join(sorted(wanted)))[:200]}" if wanted else ""
            raise AuthError(f"the server refuses every token that can be obtained{named}")
        if await held.adopt(wanted if more else frozenset()):
            return
        login = await self._find(challenge)
        if not (more or self._has_refreshed) and await held.refresh(login):
            self._has_refreshed = True  # once: a server that refuses the new one as well wants a new login
            return
        scopes = login.found.choose_scopes(wanted, held.asked, lasting=self._grant.needs_person)
        lacks = wanted if more else frozenset()
        await self._log_in(await self._registered(login, scopes, lacks), scopes)

    async def _log_in(self, login: Login, scopes: frozenset[str]) -> None:
        issuer = login.found.issuer
        endpoint = TokenEndpoint(self._web, issuer, login.client, self._options.now, login.proofs)
        request = TokenRequest(self._web, issuer, endpoint, login.client, login.found.resource, scopes)
        try:
            token = await self._grant.obtain(request)
        except TokenRefused as error:
            if error.error == "invalid_client" and self._grant.client is None:
                await self._tokens.delete(registration_key(issuer.issuer))
            raise
        self._obtained += 1
        self._ungranted = (self._ungranted | scopes) - token.scopes
        self._held.asked = scopes
        await self._held.keep(login, token)

    async def _find(self, challenge: Challenge | None) -> Login:
        if self._binding is not None and self._bound is None:
            self._bound = await bound_issuer(self._tokens, self._url, self._binding)
        found = await discover(self._web, self._url, challenge, self._bound)
        key, held = (found.issuer.issuer, found.resource or canonical(self._url)), self._held
        if held.login is not None and held.login.key != key:
            held.drop()  # nothing of one issuer is shown to another one
        if self._binding is not None:
            self._bound = found.issuer.issuer
        bound = self._options.proofs
        if bound is None:
            bound = found.wants_proofs or (challenge is not None and challenge.scheme == "dpop")
        client = held.login.client if held.login else None
        return Login(found, client, key, (self._proofs or Proofs(self._options.now)) if bound else None)

    async def _registered(self, login: Login, scopes: frozenset[str], lacks: frozenset[str]) -> Login:
        """As whom the issuer knows the client: given, by its own document, or told by the issuer, now or before.
        `lacks` is what the token that is there lacks."""
        grant, issuer = self._grant, login.found.issuer
        if not isinstance(grant, AuthorizationCode):
            return Login(login.found, grant.client, login.key, login.proofs)
        if grant.redirect is None:
            raise grant.login_required(lacks)
        if grant.client is not None:
            client = grant.client
        elif grant.metadata_url is not None and issuer.client_id_metadata_document_supported:
            client = ClientInformation(grant.metadata_url, method="none")
        else:
            client = await self._told(issuer, list(grant.redirect.redirect_uris), grant.name, scopes)
        return Login(login.found, client, login.key, login.proofs)

    async def _told(
        self, issuer: IssuerMetadata, uris: list[str], name: str, scopes: frozenset[str]
    ) -> ClientInformation:
        place = registration_key(issuer.issuer)
        kept = await self._tokens.get(place)
        if kept is not None and kept.get("redirect_uris") == uris:
            return ClientInformation.from_json(kept, issuer.issuer)
        client = await register(self._web, issuer, uris, name, sorted(scopes))
        await self._tokens.put(place, {**client.to_json(), "redirect_uris": uris})
        return client


def _same_origin(one: str, other: str) -> bool:
    root = urlsplit(canonical(one))
    return covers(f"{root.scheme}://{root.netloc}", _as_http(other))


def _as_http(url: str) -> str:
    return f"http{url[2:]}" if url[:2].lower() == "ws" else url
