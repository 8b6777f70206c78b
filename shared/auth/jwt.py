"""Access tokens that are JWTs, signed by an issuer that the operator trusts (RFC 9068; RFC 8725)."""

from collections.abc import Collection, Sequence

from ..protocol.records import record
from .claims import ClaimRules, Grant, check_claims
from .issuers import Issuer
from .jose import ALGORITHMS, BadToken, read_signed, verify

_TYPES = frozenset({"jwt", "at+jwt", "application/at+jwt"})
_FORBIDDEN_PARAMETERS = frozenset({"jku", "jwk", "x5u", "x5c", "cty"})
"""Header parameters that supply a key, or mean that the token contains another one."""


@record
class JwtTokens:
    """Checks access tokens that are JWTs."""

    issuers: Sequence[Issuer]
    rules: ClaimRules
    algorithms: Collection[str] = ALGORITHMS

    async def check(self, token: str, audiences: Collection[str], now: float) -> Grant:
        """Return the grant of `token`, which must be for one of `audiences`. Raises `BadToken`, or AuthError if the
        keys of its issuer can't be fetched."""
        signed = read_signed(token)
        issuer = next((candidate for candidate in self.issuers if candidate.url == signed.claims.get("iss")), None)
        if issuer is None:
            raise BadToken("it was issued by a different issuer")
        kind = signed.header.get("typ")
        if kind is not None and (not isinstance(kind, str) or kind.lower() not in _TYPES):
            raise BadToken("it is a token of a different type")
        if not _FORBIDDEN_PARAMETERS.isdisjoint(signed.header):
            raise BadToken("its header has a parameter that is not allowed")
        # The claims are checked first, so that a refused token causes no request for keys.
        granted = check_claims(signed.claims, issuer.url, audiences, now, self.rules)
        if granted.principal.expires is None:
            raise BadToken("it never expires")
        kid = signed.header.get("kid")
        if not isinstance(kid, str | None):
            raise BadToken("its kid is not a string")
        algorithm = signed.header["alg"]
        if algorithm not in self.algorithms:
            raise BadToken("the algorithm is not allowed")
        fault = BadToken("its key is unknown")
        for key in await issuer.keys(kid, algorithm):
            try:
                verify(signed, key, self.algorithms)
            except BadToken as error:
                fault = error
            else:
                return granted
        raise fault
