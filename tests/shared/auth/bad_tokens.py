"""Tokens that must be refused, each with one fault, by the name of the fault."""

import base64
import hmac
import json
import time
from typing import Any

from joserfc import jwe
from joserfc.jwk import ECKey, OctKey

from tests.shared.auth.issuing import STRANGER, FakeIssuer, rsa

__all__ = ["bad_tokens", "compact"]


def compact(header: Any, claims: Any, signature: bytes = b"") -> str:
    """A token of these parts, valid or not."""
    parts = [json.dumps(header).encode(), claims if isinstance(claims, bytes) else json.dumps(claims).encode()]
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in [*parts, signature])


def bad_tokens(issuer: FakeIssuer) -> dict[str, str]:
    """All bad tokens of an issuer."""
    return {**_signatures(issuer), **_headers(issuer), **_claims(issuer), **_forms(issuer)}


def _claims_of(token: str) -> dict[str, Any]:
    part = token.split(".")[1]
    read: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return read


def _signatures(issuer: FakeIssuer) -> dict[str, str]:
    good = issuer.sign()
    head, body, signature = good.split(".")
    claims = _claims_of(good)
    secrets = {
        "pem": rsa().as_pem(private=False),
        "der": rsa().as_der(private=False),
        "jwk": json.dumps(rsa().as_dict(private=False)).encode(),
    }
    hmacs = {f"HS256 with the public key as {form}": _by_secret(claims, key) for form, key in secrets.items()}
    stranger = ECKey.generate_key("P-256", private=True)
    return {
        **hmacs,
        "alg none": compact({"alg": "none", "kid": "ec", "typ": "at+jwt"}, claims),
        "alg None": compact({"alg": "None", "kid": "ec"}, claims),
        "alg none with a signature": compact({"alg": "none", "kid": "ec"}, claims, b"x" * 64),
        "no alg": compact({"kid": "ec"}, claims),
        "alg as a list": compact({"alg": ["ES256"], "kid": "ec"}, claims, b"x" * 64),
        "another alg than the key's": compact({"alg": "RS256", "kid": "ec"}, claims, b"x" * 256),
        "no signature": f"{head}.{body}.",
        "zeros for a signature": compact({"alg": "ES256", "kid": "ec", "typ": "at+jwt"}, claims, bytes(64)),
        "half a signature": f"{head}.{body}.{signature[:40]}",
        "other claims under it": f"{head}.{compact({}, {**claims, 'sub': 'root'}).split('.')[1]}.{signature}",
        "a key of the same name": issuer.sign(key=STRANGER),
        "an unknown key": issuer.sign({"kid": "unknown"}, key=stranger),
        "an unknown key without a name": issuer.sign({"kid": None}, key=stranger),
        "a name of a key that is none": issuer.sign({"kid": "../../etc/passwd"}),
    }


def _by_secret(claims: dict[str, Any], key: bytes) -> str:
    """Signed with a public key as an HMAC secret, which joserfc refuses."""
    signed = compact({"alg": "HS256", "kid": "rsa", "typ": "at+jwt"}, claims).removesuffix(".")
    digest = hmac.digest(key, signed.encode(), "sha256")
    return f"{signed}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


def _headers(issuer: FakeIssuer) -> dict[str, str]:
    mine = STRANGER.as_dict(private=False)
    return {
        "an ID token's type": issuer.sign({"typ": "id+jwt"}),
        "a proof's type": issuer.sign({"typ": "dpop+jwt"}),
        "a logout token's type": issuer.sign({"typ": "logout+jwt"}),
        "jku": issuer.sign({"jku": f"{issuer.url}/evil"}),
        "jku and its key": issuer.sign({"jku": f"{issuer.url}/evil"}, key=STRANGER),
        "x5u": issuer.sign({"x5u": f"{issuer.url}/evil"}),
        "x5c": issuer.sign({"x5c": ["MIIB"]}),
        "an embedded key": issuer.sign({"jwk": mine}, key=STRANGER),
        "an embedded key without a name": issuer.sign({"jwk": mine, "kid": None}, key=STRANGER),
        "crit": issuer.sign({"crit": ["b64"], "b64": True}),
        "nested": issuer.sign({"cty": "JWT"}),
    }


def _claims(issuer: FakeIssuer) -> dict[str, str]:
    now = int(time.time())
    odd = [
        *({"exp": None}, {"exp": now - 61}, {"exp": "never"}, {"exp": True}, {"exp": [now + 600]}),
        *({"nbf": now + 300}, {"nbf": "now"}, {"iat": now + 300}, {"iat": {}}),
        *({"aud": None}, {"aud": ""}, {"aud": []}, {"aud": {}}, {"aud": "https://other.example/mcp"}),
        *({"aud": "https://rs.example"}, {"aud": "https://rs.example/mcp/more"}, {"aud": "https://rs.example/MCP"}),
        *({"aud": "https://rs.example.evil/mcp"}, {"aud": "http://rs.example/mcp"}, {"aud": [1, None]}),
        *({"iss": None}, {"iss": ""}, {"iss": f"{issuer.url}/"}, {"iss": "https://evil.example"}),
        *({"iss": [issuer.url]}, {"iss": issuer.url.upper()}),
        *({"sub": None, "client_id": None}, {"sub": 7}, {"sub": "", "client_id": None}, {"sub": "a\nb"}),
        *({"sub": "a" * 600}, {"client_id": 7}, {"scope": 7}, {"scope": {"x": 1}}, {"scope": [1]}),
        *({"cnf": "x"}, {"cnf": {}}, {"cnf": {"jkt": 7}}, {"cnf": {"x5t#S256": "x"}}, {"cnf": {"jkt": "another"}}),
    ]
    return {f"claims {claims}": issuer.sign(**claims) for claims in odd}


def _forms(issuer: FakeIssuer) -> dict[str, str]:
    good = issuer.sign()
    encrypted = jwe.encrypt_compact({"alg": "dir", "enc": "A128GCM"}, good, OctKey.generate_key(128))
    return {
        "empty": "",
        "text": "token",
        "dots": "..",
        "two parts": good.rpartition(".")[0],
        "four parts": f"{good}.x",
        "encrypted": encrypted,
        "twice": f"{good}.{good}",
        "huge": issuer.sign(more="x" * 20_000),
        "no JSON": compact({"alg": "ES256"}, b"no json", b"x"),
        "a list of claims": compact({"alg": "ES256"}, [1], b"x"),
        "deep": compact({"alg": "ES256"}, b"[" * 6_000, b"x"),
        "a header that is a list": compact(["alg"], {}, b"x"),
        "infinite": compact({"alg": "ES256", "kid": "ec"}, b'{"exp": Infinity}', b"x"),
        "a number without end": compact({"alg": "ES256", "kid": "ec"}, b'{"exp": %s}' % (b"9" * 5_000), b"x"),
    }
