"""Opaque access tokens, checked by a request to their issuer (RFC 7662)."""

import math
import time
from base64 import b64encode
from collections.abc import Collection
from urllib.parse import quote_plus

from .claims import ClaimRules, Grant, grant
from .issuers import RETRY_SECONDS, Issuer
from .jose import BadToken
from .metadata import MetadataError
from .web import Answer, Unreachable, Web, WebError


class Introspection:
    """Checks opaque tokens. There is only one issuer, because no other issuer may see its tokens or this server's
    secret."""

    def __init__(self, issuer: Issuer, client: str, secret: str, rules: ClaimRules, web: Web) -> None:
        """`client` and `secret` are this server's credentials for the issuer."""
        self._issuer = issuer
        self._client, self._secret = client, secret
        self._rules = rules
        self._web = web
        self._unreachable_until = -math.inf

    async def check(self, token: str, audiences: Collection[str], now: float) -> Grant:
        """Return the grant of `token` at one of `audiences`. Raises `BadToken`, or AuthError if its issuer can't be
        reached."""
        issuer = self._issuer.url
        endpoint = (await self._issuer.metadata()).introspection_endpoint
        if endpoint is None:
            raise MetadataError(f"the issuer {issuer} does not support token introspection")
        answer = await self._post(endpoint, {"token": token, "token_type_hint": "access_token"})
        if answer.status == 400:
            # Some issuers give this answer for a token of another kind (RFC 7662 leaves that open).
            raise BadToken("its issuer does not recognize it")
        if answer.status != 200 or not isinstance(answer.document, dict):
            raise WebError(f"the issuer {issuer} answered token introspection with HTTP {answer.status}")
        # "true" as a string or a 1 is not an answer: the field is a boolean (RFC 7662, section 2.2).
        if answer.document.get("active") is not True:
            raise BadToken("it is not active")
        return grant(answer.document, issuer, audiences, now, self._rules)

    async def _post(self, endpoint: str, fields: dict[str, str]) -> Answer:
        # While the issuer does not answer, requests fail at once; otherwise each would wait for the whole time limit.
        if time.monotonic() < self._unreachable_until:
            raise Unreachable(f"the issuer {self._issuer.url} failed to answer a moment ago")
        try:
            # The two are encoded as in forms before they are joined (RFC 6749, section 2.3.1).
            pair = f"{quote_plus(self._client)}:{quote_plus(self._secret)}"
            headers = {"authorization": f"Basic {b64encode(pair.encode()).decode()}"}
            return await self._web.post_form(endpoint, fields, referrer=self._issuer.url, headers=headers)
        except Unreachable:
            self._unreachable_until = time.monotonic() + RETRY_SECONDS
            raise
