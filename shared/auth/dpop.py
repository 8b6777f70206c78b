"""Proofs that the sender of a token has the key to which the token is bound. Clients make them, servers check them.

(RFC 9449, DPoP. joserfc handles keys, signatures and thumbprints.)
"""

import secrets
from base64 import urlsafe_b64encode
from hashlib import sha256
from hmac import compare_digest
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from joserfc import jwt
from joserfc.jwk import ECKey

from ..protocol.records import record
from .jose import ALGORITHMS, BadToken, public_key, read_signed, verify
from .metadata import canonical

WINDOW_SECONDS = 300.0
"""Maximum difference, in seconds, between the time at which a proof was made and now."""

_TYPE = "dpop+jwt"


class BadProof(Exception):
    """Raised for an invalid proof. The text contains no part of the proof."""

    code = "invalid_dpop_proof"


@record
class Proof:
    """The content of a valid proof: which key its sender has, and when the proof was made."""

    thumbprint: str
    """The thumbprint of the key (RFC 7638), which a bound token contains as `cnf.jkt`."""
    id: str
    at: float
    """The time at which the proof was made, in seconds since 1970."""
    nonce: str | None


def new_key() -> ECKey:
    """Return a new key for proofs."""
    return ECKey.generate_key("P-256", private=True)


def make_proof(
    key: ECKey, method: str, url: str, now: float, *, token: str | None = None, nonce: str | None = None
) -> str:
    """Return the DPoP header of a request at the time `now`. `token` is the access token of the request; None for a
    request to a token endpoint. `nonce` is the last nonce that the server at `url` has sent."""
    claims: dict[str, Any] = {"jti": secrets.token_urlsafe(16), "htm": method, "htu": htu_of(url), "iat": int(now)}
    if token is not None:
        claims["ath"] = token_hash(token)
    if nonce is not None:
        claims["nonce"] = nonce
    # Each proof contains the public key, since the token has only the thumbprint of the key.
    header = {"typ": _TYPE, "alg": "ES256", "jwk": key.as_dict(private=False)}
    return jwt.encode(header, claims, key, algorithms=["ES256"])


def token_hash(token: str) -> str:
    """Return the claim `ath` for an access token, the digest of the token (RFC 9449, section 4.2)."""
    return urlsafe_b64encode(sha256(token.encode()).digest()).rstrip(b"=").decode()


def htu_of(url: str) -> str:
    """Return the claim `htu` for a request to `url`: the URL without query and fragment (RFC 9449, section 4.2)."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc, parts.path or "/", "", ""))


def check_proof(text: str, method: str, url: str, now: float, *, token: str) -> Proof:
    """Return the proof `text`, the DPoP header of a request of `method` to `url` with `token`. Raises `BadProof` if
    it is not valid at the time `now` (RFC 9449, section 4.3). The caller checks the nonce, and that the proof was not
    sent before."""
    try:
        signed = read_signed(text)
        if signed.header.get("typ") != _TYPE:
            raise BadToken("its typ is not dpop+jwt")
        key = public_key(signed.header.get("jwk"))
        if key is None:
            raise BadToken("its jwk is not a valid public key")
        verify(signed, key, ALGORITHMS)
    except BadToken as error:
        raise BadProof(f"the proof is not valid: {error}") from None
    claims = signed.claims
    jti, issued, nonce = claims.get("jti"), claims.get("iat"), claims.get("nonce")
    # The id is needed in order to detect a repeated proof, and its length must be bounded.
    if not isinstance(jti, str) or not 1 <= len(jti) <= 512:
        raise BadProof("the proof has no jti")
    if claims.get("htm") != method:
        raise BadProof("the proof is for a different method")
    if not isinstance(claims.get("htu"), str) or not _is_same_url(claims["htu"], url):
        raise BadProof("the proof is for a different URL")
    # The client's clock may be fast or slow (RFC 9449, section 11.1).
    if (
        isinstance(issued, bool)
        or not isinstance(issued, int | float)
        or not now - WINDOW_SECONDS <= issued <= now + WINDOW_SECONDS
    ):
        raise BadProof("the proof is too old, or from the future")
    if not isinstance(claims.get("ath"), str) or not compare_digest(
        claims["ath"].encode("utf-8", "replace"), token_hash(token).encode()
    ):
        raise BadProof("the proof is for a different token")
    # The thumbprint of the key that has signed the proof. The caller compares it with that in the token.
    return Proof(key.thumbprint(), jti, float(issued), nonce if isinstance(nonce, str) else None)


def _is_same_url(claimed: str, url: str) -> bool:
    """Return True if two URLs are equal after normalization (RFC 3986, sections 6.2.2 and 6.2.3)."""
    try:
        return canonical(htu_of(claimed)) == canonical(htu_of(url))
    except ValueError:
        return False
