"""Opaque access tokens, checked by a request to their issuer (RFC 7662)."""

import math
import time
from base64 import b64encode
from collections.abc import Collection
from urllib.parse import quote_plus

from .claims import ClaimRules, Grant, check_claims
from .issuers import RETRY_SECONDS, Issuer
from .jose import BadToken
from .metadata import MetadataError
from .web import Answer, Unreachable, Web, WebError


class Introspection:
    """Checks opaque tokens of one issuer. With several issuers, it would be unknown which one to ask, and no issuer
    may see the tokens of another."""

    def __init__(self, issuer: Issuer, client: str, secret: str, rules: ClaimRules, web: Web) -> None:
        """`client` and `secret` are the credentials of this server at the issuer."""
        self._issuer = issuer
        self._client, self._secret = client, secret
        self._rules = rules
        self._web = web
        self._unreachable_until = -math.inf

    async def check(self, token: str, audiences: Collection[str], now: float) -> Grant:
        """Return the grant of `token`, which must be for one of `audiences`. Raises `BadToken`, or AuthError if the
        issuer can't be reached."""
        issuer = self._issuer.url
        endpoint = (await self._issuer.metadata()).introspection_endpoint
        if endpoint is None:
            raise MetadataError(f"the issuer {issuer} does not support token introspection")
        answer = await self._post(endpoint, {"token": token, "token_type_hint": "access_token"})
        if answer.status == 400:
            # Some issuers answer with this status if they don't know the token (RFC 7662 leaves that open).
            raise BadToken("its issuer does not recognize it")
        if answer.status != 200 or not isinstance(answer.document, dict):
            raise WebError(f"the issuer {issuer} answered token introspection with HTTP {answer.status}")
        # Only the boolean `true` counts, not a string or a number (RFC 7662, section 2.2).
        if answer.document.get("active") is not True:
            raise BadToken("it is not active")
        return check_claims(answer.document, issuer, audiences, now, self._rules)

    async def _post(self, endpoint: str, fields: dict[str, str]) -> Answer:
        # After a failure, requests fail at once for a while, so that they don't all wait for the whole timeout.
        if time.monotonic() < self._unreachable_until:
            raise Unreachable(f"the issuer {self._issuer.url} failed to answer a moment ago")
        try:
            # Client id and secret are form-encoded before they are joined (RFC 6749, section 2.3.1).
            pair = f"{quote_plus(self._client)}:{quote_plus(self._secret)}"
            headers = {"authorization": f"Basic {b64encode(pair.encode()).decode()}"}
            return await self._web.post_form(endpoint, fields, referrer=self._issuer.url, headers=headers)
        except Unreachable:
            self._unreachable_until = time.monotonic() + RETRY_SECONDS
            raise
