"""Static bearer tokens: anyone who has a token may use the server.

A token arrives as `Authorization: Bearer …` (RFC 6750) or, from clients that can't send that header, as `X-API-Key`.

Tokens are compared by digest and in constant time. The key of a principal is derived from the digest, so that neither
logs nor sessions contain the token.
"""

import hmac
from collections.abc import Iterable
from hashlib import sha256
from typing import TYPE_CHECKING

from ..protocol.http.rules import Denial, HttpRequest
from ..protocol.identity import Principal

if TYPE_CHECKING:
    from .tokens_file import TokensFile  # most operators have one token, or none


class StaticTokens:
    """An `Authenticator` for tokens that the operator issues. If there are no tokens, all clients may use the server
    anonymously."""

    def __init__(self, tokens: Iterable[str], *files: "TokensFile") -> None:
        """`files` contain further tokens, and may change. Raises ValueError for an empty token, since a client with
        an empty header would match it."""
        tokens = tuple(tokens)
        if not all(token.strip() for token in tokens):
            raise ValueError("an empty token would let in every client")
        digests = [sha256(token.encode()).digest() for token in tokens]
        self._principals = {digest: Principal(f"token-{digest.hex()[:12]}") for digest in digests}
        self._files = files

    def __bool__(self) -> bool:
        return bool(self._principals or self._files)

    def owner_of(self, token: str) -> Principal | None:
        """Return the owner of this token; None if it is unknown."""
        if self._principals:
            digest = sha256(token.encode()).digest()
            # All digests are compared, so that the time reveals nothing about the tokens.
            matching = [stored for stored in self._principals if hmac.compare_digest(stored, digest)]
            if matching:
                return self._principals[matching[0]]
        for file in self._files:
            owner = file.owner_of(token)
            if owner is not None:
                return owner
        return None

    async def authenticate(self, request: HttpRequest) -> Principal | Denial | None:
        """Return the owner of the token in a request, or the refusal to send; None if there are no tokens."""
        if not self:
            return None
        authorization = request.headers.get("authorization")
        if authorization is None:
            token = request.headers.get("x-api-key")  # from programs that only know API keys
        else:
            scheme, _, value = authorization.partition(" ")
            token = value.strip(" \t") if scheme.lower() == "bearer" else None
        if token is None:
            return Denial("a bearer token is required", "Bearer")
        return self.owner_of(token) or Denial("the token is not valid", 'Bearer error="invalid_token"')

    def knows(self, request: HttpRequest) -> bool:
        """Return True: no request has to be sent to identify the sender."""
        return True
