"""The limit of failed authentications from one address, beyond which unknown tokens are not checked.

Checking a token may be costly, for this server and for the token's issuer, so senders who guess tokens, or send none,
are limited by address. Other senders at the same address, for example behind the same proxy, are served as usual if
their tokens were accepted before.
"""

import math
from collections import Counter
from contextlib import suppress

from ....contracts import Authenticator, CachingAuthenticator, Rate
from ....protocol.http.rules import Denial, HttpRequest, Refusal, limit_exceeded
from ....protocol.identity import Principal
from .client_shares import client_name
from .rate_limits import ClientQuotas

TOO_MANY_REQUESTS = 429
"""RFC 6585, section 4."""

_UNAVAILABLE = 503
"""The status of a denial if the issuer can't be reached."""

RATE = Rate(per_second=50, burst=200)
"""The rate of invalid tokens from one address."""


class FailedLogins:
    """Authenticates the requests of one listener with `authenticator`, and limits the failed attempts from each
    address."""

    def __init__(self, authenticator: Authenticator, quotas: ClientQuotas) -> None:
        self._authenticator = authenticator
        self._knows = authenticator.knows if isinstance(authenticator, CachingAuthenticator) else _knows_nobody
        self._quotas = quotas
        self._pending: Counter[str] = Counter()

    async def authenticate(self, request: HttpRequest) -> Principal | Denial | None:
        """Return the sender of `request`; a denial with status 429 after too many failures."""
        headers, is_known = request.headers, self._knows(request)
        # A request without credentials is no guess: a client sends one to learn from the challenge where to get a
        # token. It counts as a request.
        if headers.get("authorization") is None and headers.get("x-api-key") is None:
            sender = await self._authenticator.authenticate(request)
            if not isinstance(sender, Denial):
                return sender
            error = await self._quotas.check(client_name(None, request.address))
            return sender if error is None else _deny(error.seconds)
        # Known tokens are checked before any limit, because the clients of a proxy share its address, and their valid
        # tokens must pass even if other clients fail.
        sender = await self._authenticator.authenticate(request) if is_known else None
        if is_known and not isinstance(sender, Denial):
            return sender
        key, limiter = f"attempts {client_name(None, request.address)}", self._quotas.limiter
        # Pending checks count as well: otherwise ten thousand simultaneous checks would all start before the first
        # has failed.
        wait = 0.0
        with suppress(OSError):
            # A cost of 0 only asks whether there is a wait: a valid token costs nothing.
            wait = await limiter.take(key, RATE, 0.0)
        wait = wait or float(self._pending[key] >= RATE.burst)
        if not is_known:
            if wait:
                return _deny(wait)
            sender = await self._authenticate_unknown(request, key)
        if not isinstance(sender, Denial):
            return sender
        # The credentials themselves were not refused if the issuer can't be reached, or only a nonce was missing.
        if sender.status == _UNAVAILABLE or any(name == "dpop-nonce" for name, _ in sender.headers):
            return sender
        limiter.spend(key, RATE, 1.0)
        return _deny(wait) if wait else sender

    async def _authenticate_unknown(self, request: HttpRequest, key: str) -> Principal | Denial | None:
        self._pending[key] += 1
        try:
            return await self._authenticator.authenticate(request)
        finally:
            self._pending[key] -= 1
            if not self._pending[key]:
                del self._pending[key]

    async def refuse(self, refusal: Refusal, address: str) -> Refusal:
        """Return `refusal`, or 429 if the address has sent too many requests that were refused before
        authentication."""
        error = await self._quotas.check(client_name(None, address))
        return refusal if error is None else limit_exceeded(error)


def _knows_nobody(_request: HttpRequest) -> bool:
    return False


def _deny(seconds: float) -> Denial:
    headers = (("retry-after", str(max(1, math.ceil(seconds)))),)
    return Denial("too many unauthenticated requests from this address", "", TOO_MANY_REQUESTS, headers)
