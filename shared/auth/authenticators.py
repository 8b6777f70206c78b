"""Authentication of HTTP requests by the token in their header: one of the operator's own, or one from an issuer.

The result of checking a token, its `Grant`, is cached for a while by the token's digest. Proofs of possession are
checked each time. Neither responses nor logs contain any part of a token.

(RFC 6750; RFC 9449, section 7; 2026-07-28, Authorization, Access Token Usage.)
"""

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from hashlib import sha256
from typing import Literal, Protocol
from urllib.parse import parse_qsl
from weakref import WeakValueDictionary

from ..errors import AuthError
from ..protocol.http.protected import ProtectedResource
from ..protocol.http.rules import Denial, HttpRequest
from ..protocol.identity import Principal
from ..protocol.records import record
from .claims import Grant
from .first_contact import FirstContact
from .jose import ALGORITHMS, BadToken
from .possession import Possession

MAX_CACHED = 4_096
"""Maximum number of grants in the cache."""
_TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]+=*")  # RFC 6750, section 2.1
_RETRY_AFTER = "30"  # seconds


class LocalTokens(Protocol):
    """The operator's own tokens, which no issuer has to check."""

    def owner_of(self, token: str) -> Principal | None:
        """Return the owner of `token`; None if `token` is not one of these tokens."""


class TokenChecker(Protocol):
    """Checks the tokens of issuers."""

    async def check(self, token: str, audiences: Collection[str], now: float) -> Grant:
        """Return the grant of `token`. Raises `BadToken`, or AuthError if the token can't be checked."""


@record
class _SentToken:
    scheme: Literal["bearer", "dpop", "key"]
    """How it was sent: in the Authorization header with the scheme Bearer or DPoP, or in X-API-Key (`key`), where
    only the operator's own tokens are accepted."""
    token: str


class OAuthTokens:
    """Identifies senders by their tokens: a `CachingAuthenticator` and a `RemoteAuthenticator`."""

    def __init__(
        self,
        checker: TokenChecker,
        possession: Possession,
        *,
        own_tokens: LocalTokens | None = None,
        first_contact: FirstContact | None = None,
        cache_seconds: float = 300.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`own_tokens` are the operator's own tokens; `first_contact` sends the first requests to the issuers. A
        result of `checker` is cached for `cache_seconds`."""
        self._checker = checker
        self._possession = possession
        self._own_tokens = own_tokens
        self._first_contact = first_contact or FirstContact({})
        self._cache_seconds = cache_seconds
        self._clock = clock
        self._cache: OrderedDict[tuple[bytes, str], tuple[Grant, float]] = OrderedDict()
        self._locks: WeakValueDictionary[tuple[bytes, str], asyncio.Lock] = WeakValueDictionary()

    async def authenticate(self, request: HttpRequest) -> Principal | Denial:
        """Return the sender of `request`, or the refusal to send."""
        resource = request.resource
        sent = _read_token(request)
        if isinstance(sent, Denial):
            return sent
        owner = None
        if sent is not None and sent.scheme != "dpop" and self._own_tokens is not None:
            owner = self._own_tokens.owner_of(sent.token)
        if owner is not None:
            return owner
        if resource is None:
            return Denial("a bearer token is required", "Bearer")
        if sent is None:
            if self._possession.requires_bound_tokens:
                return Denial("a token is required", resource.challenge(scheme="DPoP", algorithms=sorted(ALGORITHMS)))
            return Denial("a token is required", resource.challenge())
        if sent.scheme == "key":
            return _refuse_token(resource, False, "a token from an issuer must be in the Authorization header")
        if not _TOKEN.fullmatch(sent.token):
            if sent.scheme == "dpop":
                return _refuse_token(resource, True, "the token is malformed")
            return _refuse_request("the token is malformed", resource)
        try:
            granted = await self._get_grant(sent, resource)
        except BadToken as error:
            return _refuse_token(resource, sent.scheme == "dpop", f"the token is not valid: {error}")
        except AuthError:
            return Denial("tokens can't be checked at the moment", "", 503, (("retry-after", _RETRY_AFTER),))
        fault = await self._possession.check(request, granted, sent.token, sent.scheme == "dpop", self._clock())
        return granted.principal if fault is None else fault

    async def reach_issuers(self) -> None:
        """Contact each issuer until it has answered once. Never raises."""
        await self._first_contact.reach_issuers()

    @property
    def unreached(self) -> str | None:
        """A message that names the issuers while none of them has answered; None after the first answer."""
        return self._first_contact.unreached

    def knows(self, request: HttpRequest) -> bool:
        """Return True if no request to an issuer is needed to identify the sender of `request`: the grant is cached,
        the token is one of the operator's own, or the request has no token, is refused without a check of its token,
        or is for no resource. Proofs are not checked."""
        sent = _read_token(request)
        if sent is None or isinstance(sent, Denial):
            return True
        if (
            self._own_tokens is not None
            and sent.scheme != "dpop"
            and self._own_tokens.owner_of(sent.token) is not None
        ):
            return True
        return request.resource is None or self._find_cached(_cache_key(sent, request.resource)) is not None

    async def _get_grant(self, sent: _SentToken, resource: ProtectedResource) -> Grant:
        key = _cache_key(sent, resource)
        granted = self._find_cached(key)
        if granted is not None:
            return granted
        # A client that starts sends several requests at once: the first one checks the token for all of them.
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            granted = self._find_cached(key)
            if granted is None:
                granted = await self._checker.check(sent.token, resource.audiences, self._clock())
                until, expires = self._clock() + self._cache_seconds, granted.principal.expires
                self._cache[key] = granted, until if expires is None else min(until, expires)
                if len(self._cache) > MAX_CACHED:
                    self._cache.popitem(last=False)
            return granted

    def _find_cached(self, key: tuple[bytes, str]) -> Grant | None:
        entry = self._cache.get(key)
        if entry is None:
            return None
        if self._clock() >= entry[1]:
            del self._cache[key]
            return None
        self._cache.move_to_end(key)
        return entry[0]


def _cache_key(sent: _SentToken, resource: ProtectedResource) -> tuple[bytes, str]:
    # A digest instead of the token, so that the cache contains no valid tokens. With the resource, because a token is
    # checked for the audience of the resource.
    return sha256(sent.token.encode("utf-8", "replace")).digest(), resource.uri


def _read_token(request: HttpRequest) -> _SentToken | Denial | None:
    """Return the token of a request; None if there is none; a refusal if there is a token in the URL, or more than
    one Authorization header."""
    headers = request.headers
    # Logs and browser histories contain URLs (RFC 6750, section 5.3; 2026-07-28 forbids tokens in them).
    if request.query and _has_token(request.query):
        return _refuse_request("a token must be in the Authorization header, not in the URL", request.resource)
    # A proxy in front of this server may have checked another one of them.
    if "authorization" in headers.repeated:
        return _refuse_request("there is more than one Authorization header", request.resource)
    text = headers.get("authorization")
    if text is None:
        key = headers.get("x-api-key")
        return None if key is None else _SentToken("key", key)
    scheme, _, token = text.partition(" ")
    match scheme.lower():
        case "bearer":
            return _SentToken("bearer", token.strip(" \t"))
        case "dpop":
            return _SentToken("dpop", token.strip(" \t"))
    return None


def _has_token(query: bytes) -> bool:
    try:
        # A blank token counts too: its sender tries to authenticate by the URL.
        return any(name == "access_token" for name, _ in parse_qsl(query.decode("latin-1"), keep_blank_values=True))
    except ValueError:
        return True


def _refuse_request(reason: str, resource: ProtectedResource | None) -> Denial:
    challenge = "Bearer" if resource is None else resource.challenge("invalid_request", reason)
    return Denial(reason, challenge, 400)


def _refuse_token(resource: ProtectedResource, is_dpop: bool, reason: str) -> Denial:
    if is_dpop:
        challenge = resource.challenge("invalid_token", reason, scheme="DPoP", algorithms=sorted(ALGORITHMS))
    else:
        challenge = resource.challenge("invalid_token", reason)
    return Denial("the token is not valid", challenge)
