"""Checks the claims of a token, and derives from them the principal that sends it.

The same rules apply to the claims in a signed token (RFC 7519, RFC 9068) and to those in an issuer's answer about an
opaque token (RFC 7662).
"""

import math
from collections.abc import Collection, Mapping
from typing import Any

from ..protocol.identity import Principal
from ..protocol.records import record
from .jose import BadToken
from .metadata import canonical

CLIENT = "client:"
"""The prefix of a principal's name, before the client id, if the token belongs to a client without a user. It
distinguishes such a client from a user of the same name."""
_MAX_NAME = 512  # characters
_MAX_SCOPES = 1_024


@record
class ClaimRules:
    """How the operator has tokens of issuers checked."""

    skew: float = 60.0
    """Seconds by which an issuer's clock may differ from this machine's."""
    principal_claim: str = "sub"
    """The claim that contains the principal's name, as used in settings."""
    has_several_issuers: bool = False
    """True if several issuers are trusted, so that a principal's name is combined with its issuer."""


@record
class Grant:
    """The result of a successful check of a token."""

    principal: Principal
    thumbprint: str | None
    """The thumbprint of the key to which the token is bound (RFC 9449, section 6.1); None for a bearer token."""


def check_claims(
    claims: Mapping[str, Any], issuer: str, audiences: Collection[str], now: float, rules: ClaimRules
) -> Grant:
    """Return the grant of a token with these claims. Raises `BadToken` if it is not from `issuer`, not for one of
    `audiences`, not valid at `now`, or does not identify a principal."""
    # The issuer is compared without normalization (RFC 9068, section 4). An answer to token introspection comes from
    # the issuer itself, and may lack it.
    if "iss" in claims and claims["iss"] != issuer:
        raise BadToken("it was issued by a different issuer")
    audience = claims.get("aud")
    claimed = audience if isinstance(audience, list) else [audience]
    accepted = {canonical(item) for item in audiences}
    # A token without an audience is refused too: otherwise a token for another server would be accepted here
    # (2026-07-28, Authorization, Access Token Usage).
    if not any(isinstance(item, str) and canonical(item) in accepted for item in claimed):
        raise BadToken("it is for a different audience")
    expires = _check_times(claims, now, rules.skew)
    subject, client = _read_name(claims, "sub"), _read_name(claims, "client_id") or _read_name(claims, "azp")
    if subject:
        key = f"{issuer}#{subject}"
    elif client:
        # The URL of an issuer has no query, so this can't be the key of a user.
        key = f"{issuer}?client#{client}"
    else:
        raise BadToken("it has neither sub nor client_id")
    name = _read_name(claims, rules.principal_claim)
    if name.startswith(CLIENT):
        raise BadToken("its principal starts with 'client:', a prefix reserved for clients")
    if not name and rules.principal_claim == "sub":
        name = CLIENT + client
    if not name:
        # Without a name, no rule of the operator could apply to this principal.
        raise BadToken("it lacks the claim that identifies its principal")
    # Users of different issuers may have the same name (RFC 7519, section 4.1.2).
    if rules.has_several_issuers:
        name = f"{issuer}#{name}"
    # The scopes of a token (RFC 8693, section 4.2); some issuers call them `scp`.
    value = claims.get("scope", claims.get("scp"))
    parts = value.split() if isinstance(value, str) else [] if value is None else value
    if not isinstance(parts, list) or len(parts) > _MAX_SCOPES or not all(isinstance(item, str) for item in parts):
        raise BadToken("its scopes are not valid")
    principal = Principal(key, name, frozenset(parts), client or None, expires)
    return Grant(principal, _read_thumbprint(claims))


def _check_times(claims: Mapping[str, Any], now: float, skew: float) -> float | None:
    """Return the time at which a token expires, in seconds since 1970; None if it never expires."""
    expires = _read_time(claims, "exp")
    if expires is not None and now >= expires + skew:
        raise BadToken("it has expired")
    for name in ("nbf", "iat"):
        begins = _read_time(claims, name)
        if begins is not None and begins > now + skew:
            raise BadToken("it is not valid yet")
    return None if expires is None else expires + skew


def _read_time(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    try:
        # `float` raises OverflowError for integers that are too large.
        seconds = math.nan if isinstance(value, bool) or not isinstance(value, int | float) else float(value)
    except OverflowError:
        seconds = math.nan
    if not math.isfinite(seconds):
        raise BadToken("one of its time claims is not a number")
    return seconds


def _read_name(claims: Mapping[str, Any], name: str) -> str:
    """Return a claim that contains a name; an empty string if the claim is missing."""
    value = claims.get(name)
    if value is None:
        return ""
    # Logs contain these names, so control characters are not allowed.
    if not isinstance(value, str) or len(value) > _MAX_NAME or not value.isprintable():
        raise BadToken("one of its names is not valid")
    return value


def _read_thumbprint(claims: Mapping[str, Any]) -> str | None:
    """Return the thumbprint of the key to which a token is bound; None for a bearer token. Raises `BadToken` if it is
    bound to anything else."""
    if "cnf" not in claims:
        return None
    bound = claims["cnf"]
    # Another binding, such as to a TLS certificate (`x5t#S256`, RFC 8705), can't be checked here, and ignoring it
    # would let a thief use the token.
    if not isinstance(bound, dict) or set(bound) != {"jkt"} or not isinstance(bound["jkt"], str):
        raise BadToken("it is bound in a way that this server can't check")
    return bound["jkt"]
