"""Static bearer tokens: whoever brings one of them may use the server.

A token comes as `Authorization: Bearer …` (RFC 6750) or, for clients that can't send that, as `X-API-Key`.
Tokens are compared by digest and in constant time. A principal is a short name made of the digest, so that
neither logs nor sessions hold the token.
"""

import hmac
from collections.abc import Iterable
from hashlib import sha256

from ..protocol.http.rules import Headers, Refusal, refuse

__all__ = ["Tokens"]


class Tokens:
    """The tokens a server takes. With none at all everybody may use it, as nobody in particular."""

    def __init__(self, tokens: Iterable[str]) -> None:
        """Raises ValueError for an empty token, which everybody would have."""
        self._digests = [sha256(token.encode()).digest() for token in tokens if _usable(token)]

    def admit(self, headers: Headers) -> str | Refusal | None:
        """The principal of a request, or None where no token is needed; 401 without a right token."""
        if not self._digests:
            return None
        sent = _sent(headers)
        if sent is None:
            return refuse(401, "a bearer token is required", WWW_Authenticate="Bearer")
        given = sha256(sent.encode()).digest()
        # Every digest is compared, so that time does not tell which one came close.
        matching = [known for known in self._digests if hmac.compare_digest(known, given)]
        if not matching:
            return refuse(401, "the token is not valid", WWW_Authenticate='Bearer error="invalid_token"')
        return f"token-{matching[0].hex()[:12]}"


def _sent(headers: Headers) -> str | None:
    authorization = headers.get("authorization")
    if authorization is None:
        return headers.get("x-api-key")
    scheme, _, token = authorization.partition(" ")
    return token.strip(" \t") if scheme.lower() == "bearer" else None


def _usable(token: str) -> bool:
    if not token.strip():
        raise ValueError("an empty token would let everybody in")
    return True
