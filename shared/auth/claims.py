"""Rules for the claims of a token, which decide whether its sender is a principal.

They apply to the claims of a signed token (RFC 7519, RFC 9068) and to an issuer's answer about any other token (RFC
7662), whose claims have the same names.
"""

import math
from collections.abc import Collection, Mapping
from typing import Any

from ..protocol.identity import Principal
from ..protocol.records import record
from .jose import BadToken
from .metadata import canonical

CLIENT = "client:"
"""The prefix in settings for a client without a user, before its id, since a user may have the same name."""
_MAX_NAME = 512  # characters
_MAX_SCOPES = 1_024


@record
class ClaimRules:
    """An operator's rules for the tokens of issuers."""

    skew: float = 60.0
    """Seconds by which an issuer's clock may differ from this machine's."""
    principal_claim: str = "sub"
    """The claim that contains the principal's name, as used in settings."""
    has_several_issuers: bool = False
    """True if the principal's name must be combined with the name of its issuer."""


@record
class Grant:
    """The rights that a token grants."""

    principal: Principal
    thumbprint: str | None
    """The thumbprint of the key to which the token is bound (RFC 9449, section 6.1); None if it is not bound."""


def grant(claims: Mapping[str, Any], issuer: str, audiences: Collection[str], now: float, rules: ClaimRules) -> Grant:
    """Return the grant of a token of `issuer` with these claims at one of `audiences`. Raises `BadToken`."""
    # The issuer is compared without any normalization (RFC 9068, section 4). An answer of introspection may lack it,
    # since it came from the issuer itself.
    if "iss" in claims and claims["iss"] != issuer:
        raise BadToken("it was issued by a different issuer")
    audience = claims.get("aud")
    claimed = audience if isinstance(audience, list) else [audience]
    accepted = {canonical(item) for item in audiences}
    # A token without an audience is refused as well, or one that was stolen at another server would be accepted here
    # (2026-07-28, Authorization, Access Token Usage).
    if not any(isinstance(item, str) and canonical(item) in accepted for item in claimed):
        raise BadToken("it is for a different audience")
    expires = _check_times(claims, now, rules.skew)
    subject, client = _read_name(claims, "sub"), _read_name(claims, "client_id") or _read_name(claims, "azp")
    if subject:
        key = f"{issuer}#{subject}"
    elif client:
        # No issuer has a query, so no subject has this key.
        key = f"{issuer}?client#{client}"
    else:
        raise BadToken("it has neither sub nor client_id")
    name = _read_name(claims, rules.principal_claim)
    if name.startswith(CLIENT):
        raise BadToken("its principal starts with 'client:', a prefix reserved for clients")
    if not name and rules.principal_claim == "sub":
        name = CLIENT + client
    if not name:
        # No rule could name this principal, so none would apply.
        raise BadToken("it lacks the claim that identifies its principal")
    # A subject is unique at its issuer only (RFC 7519, section 4.1.2).
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
        # JSON has integers that no float holds, for which `float` raises.
        seconds = math.nan if isinstance(value, bool) or not isinstance(value, int | float) else float(value)
    except OverflowError:
        seconds = math.nan
    if not math.isfinite(seconds):
        raise BadToken("one of its time claims is not a number")
    return seconds


def _read_name(claims: Mapping[str, Any], name: str) -> str:
    """Return a claim that contains a name; empty if the claim is missing."""
    value = claims.get(name)
    if value is None:
        return ""
    # Names are written to logs.
    if not isinstance(value, str) or len(value) > _MAX_NAME or not value.isprintable():
        raise BadToken("one of its names is not valid")
    return value


def _read_thumbprint(claims: Mapping[str, Any]) -> str | None:
    """Return the thumbprint of the key to which a token is bound. A token that is bound to anything else can't be
    checked here."""
    if "cnf" not in claims:
        return None
    bound = claims["cnf"]
    # For example to a certificate of mutual TLS (`x5t#S256`, RFC 8705): without the check a thief could use it.
    if not isinstance(bound, dict) or set(bound) != {"jkt"} or not isinstance(bound["jkt"], str):
        raise BadToken("it is bound in a way that this server can't check")
    return bound["jkt"]
