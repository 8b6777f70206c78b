"""Signed tokens, read and verified by joserfc within our own limits. No key is trusted merely because a token names
it."""

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
"""Accepted signature algorithms: only asymmetric ones, so that a public key can't sign."""
MAX_TOKEN = 16 * 1024
"""Maximum length of a token, in characters."""

_FAULTS = (JoseError, ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""Exceptions of joserfc for invalid tokens and keys, including deeply nested ones."""
_MIN_RSA_BITS = 2048


class BadToken(Exception):
    """Raised for an invalid signed token. The text contains no part of the token."""


@record
class SignedToken:
    """A token whose signature is still to be verified."""

    header: Mapping[str, Any]
    claims: Mapping[str, Any]
    raw: CompactSignature


class _Registry(JWSRegistry):
    """The rules of joserfc, with room for the keys in the headers of proofs. `EdDSA` is deprecated only as a name,
    and most issuers still use it."""

    max_header_length = 4 * 1024
    max_payload_length = MAX_TOKEN
    max_signature_length = 2 * 1024

    def get_alg(self, name: str) -> Any:
        if name not in (self.allowed or ()):
            raise BadToken("the algorithm is not allowed")
        return self.algorithms[name]


def read_signed(text: str) -> SignedToken:
    """Return the parts of a compact JWS of JSON claims (RFC 7515, section 7.1). Raises `BadToken`."""
    if len(text) > MAX_TOKEN:
        raise BadToken("it is too long")
    try:
        raw = extract_compact(text.encode("ascii"), registry=_Registry(strict_check_header=False))
        header: Any = raw.headers()
        claims = json.loads(raw.payload)
    except _FAULTS:
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
    except _FAULTS:
        raise BadToken("the signature is not valid") from None
    if not is_signed:
        raise BadToken("the signature is not valid")


def public_key(jwk: Any) -> Key | None:
    """Return the key of a JWK for signatures of the usual kinds; None for any other JWK."""
    if not isinstance(jwk, dict):
        return None
    kinds: dict[str, type[RSAKey | ECKey | OKPKey]] = {"RSA": RSAKey, "EC": ECKey, "OKP": OKPKey}
    kind = kinds.get(str(jwk.get("kty")))
    if kind is None or jwk.get("use", "sig") != "sig":
        return None
    try:
        with warnings.catch_warnings():  # about keys that are too short, which are refused anyway
            warnings.simplefilter("ignore", SecurityWarning)
            key = kind.import_key(jwk)
        is_usable = not key.is_private and (not isinstance(key, RSAKey) or key.public_key.key_size >= _MIN_RSA_BITS)
    except _FAULTS:
        return None
    return key if is_usable else None
