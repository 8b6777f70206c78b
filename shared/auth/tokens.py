"""Static bearer tokens: whoever brings one of them may use the server.

A token comes as `Authorization: Bearer …` (RFC 6750) or, for clients that can't send that, as `X-API-Key`.
Tokens are compared by digest and in constant time. The key of a principal is made of the digest, so that neither logs
nor sessions hold the token.
"""

import hmac
from collections.abc import Iterable
from hashlib import sha256

from ..protocol.http.rules import Denial, Headers
from ..protocol.identity import Principal

__all__ = ["StaticTokens"]


class StaticTokens:
    """An `Authenticator` that knows its tokens from the start. With none at all everybody may use the server, as
    nobody in particular."""

    def __init__(self, tokens: Iterable[str]) -> None:
        """Raises ValueError for an empty token, which everybody would have."""
        tokens = tuple(tokens)
        if not all(token.strip() for token in tokens):
            raise ValueError("an empty token would let everybody in")
        digests = [sha256(token.encode()).digest() for token in tokens]
        self._principals = {digest: Principal(f"token-{digest.hex()[:12]}") for digest in digests}

    async def authenticate(self, headers: Headers) -> Principal | Denial | None:
        """Whose token a request has."""
        if not self._principals:
            return None
        sent = _sent(headers)
        if sent is None:
            return Denial("a bearer token is required", "Bearer")
        given = sha256(sent.encode()).digest()
        # Every digest is compared, so that time does not tell which one came close.
        matching = [known for known in self._principals if hmac.compare_digest(known, given)]
        if not matching:
            return Denial("the token is not valid", 'Bearer error="invalid_token"')
        return self._principals[matching[0]]


def _sent(headers: Headers) -> str | None:
    authorization = headers.get("authorization")
    if authorization is None:
        return headers.get("x-api-key")
    scheme, _, token = authorization.partition(" ")
    return token.strip(" \t") if scheme.lower() == "bearer" else None
