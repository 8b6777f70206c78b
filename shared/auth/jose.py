"""Signed tokens: reads and verifies them with joserfc, within our own limits. A key in the header of a token is never
trusted just because it is there."""

import json
import warnings
from collections.abc import Collection, Mapping
from typing import Any

from joserfc.errors import JoseError, SecurityWarning
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey
from joserfc.jws import CompactSignature, JWSRegistry, extract_compact, validate_compact

from ..protocol.records import record

ALGORITHMS = frozenset(
    {
        *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"),
        *("EdDSA", "Ed25519", "Ed448"),
    }
)
"""Accepted signature algorithms. With a symmetric one, an attacker could sign with the issuer's public key."""
MAX_TOKEN_LENGTH = 16 * 1024
"""Maximum length of a token, in characters."""

_JOSERFC_ERRORS = (JoseError, ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""Exceptions that joserfc raises for invalid tokens and keys."""
_MIN_RSA_BITS = 2048


class BadToken(Exception):
    """Raised for an invalid signed token. The text contains no part of the token."""


@record
class SignedToken:
    """The parts of a signed token, whose signature has not been verified yet."""

    header: Mapping[str, Any]
    claims: Mapping[str, Any]
    raw: CompactSignature


class _Registry(JWSRegistry):
    """The settings of joserfc. The header may be larger than its default, since that of a proof contains a key.
    `EdDSA` is accepted: the name is deprecated, but most issuers use it."""

    max_header_length = 4 * 1024
    max_payload_length = MAX_TOKEN_LENGTH
    max_signature_length = 2 * 1024

    def get_alg(self, name: str) -> Any:
        if name not in (self.allowed or ()):
            raise BadToken("the algorithm is not allowed")
        return self.algorithms[name]


def read_signed(text: str) -> SignedToken:
    """Return the parts of `text`, a compact JWS with JSON claims (RFC 7515, section 7.1). Raises `BadToken`."""
    if len(text) > MAX_TOKEN_LENGTH:
        raise BadToken("it is too long")
    try:
        raw = extract_compact(text.encode("ascii"), registry=_Registry(strict_check_header=False))
        header: Any = raw.headers()
        claims = json.loads(raw.payload)
    except _JOSERFC_ERRORS:
        raise BadToken("it is not a signed token") from None
    if not isinstance(header, dict) or not isinstance(claims, dict) or not isinstance(header.get("alg"), str):
        raise BadToken("it is not a signed token")
    return SignedToken(header, claims, raw)


def verify(token: SignedToken, key: Key, algorithms: Collection[str]) -> None:
    """Raise `BadToken` unless `key` has signed `token`, by one of `algorithms`. An empty collection allows none."""
    if token.header.get("alg") not in algorithms:
        raise BadToken("the algorithm is not allowed")
    if "crit" in token.header:
        raise BadToken("it has critical header parameters, which are not supported")
    try:
        is_signed = validate_compact(
            token.raw, key, registry=_Registry(algorithms=algorithms, strict_check_header=False)
        )
    except _JOSERFC_ERRORS:
        raise BadToken("the signature is not valid") from None
    if not is_signed:
        raise BadToken("the signature is not valid")


def public_key(jwk: Any) -> Key | None:
    """Return the public key in a JWK. None if it is not a public RSA, EC or OKP key for signatures, or too short."""
    if not isinstance(jwk, dict):
        return None
    kinds: dict[str, type[RSAKey | ECKey | OKPKey]] = {"RSA": RSAKey, "EC": ECKey, "OKP": OKPKey}
    kind = kinds.get(str(jwk.get("kty")))
    if kind is None or jwk.get("use", "sig") != "sig":
        return None
    try:
        with warnings.catch_warnings():  # it warns about keys that are too short, which are refused below
            warnings.simplefilter("ignore", SecurityWarning)
            key = kind.import_key(jwk)
        is_usable = not key.is_private and (not isinstance(key, RSAKey) or key.public_key.key_size >= _MIN_RSA_BITS)
    except _JOSERFC_ERRORS:
        return None
    return key if is_usable else None
