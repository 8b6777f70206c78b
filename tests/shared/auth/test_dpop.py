"""DPoP proofs: creation and checks."""

from typing import Any

from joserfc import jwt
from joserfc.jwk import ECKey, OctKey

from shared.auth.dpop import BadProof, check_proof, htu_of, make_proof, new_key, token_hash
from tests.shared.auth.issuing import rsa

URL, NOW, TOKEN = "https://rs.example/mcp", 1_800_000_000.0, "the-token"
KEY = new_key()
GOOD: dict[str, Any] = {"jti": "one", "htm": "POST", "htu": URL, "iat": NOW, "ath": token_hash(TOKEN)}


def signed(header: dict[str, Any], claims: dict[str, Any], key: Any = KEY) -> str:
    whole = {"typ": "dpop+jwt", "alg": "ES256", "jwk": key.as_dict(private=False), **header}
    kept = {name: value for name, value in claims.items() if value is not None}
    present = {name: value for name, value in whole.items() if value is not None}
    return jwt.encode(present, kept, key, algorithms=["ES256", "HS256", "RS256"], default_type=None)


def test_a_proof_of_make_proof_is_accepted() -> None:
    proof = check_proof(make_proof(KEY, "POST", f"{URL}?q=1#f", NOW, token=TOKEN), "POST", URL, NOW, token=TOKEN)
    assert (proof.thumbprint, proof.at, proof.nonce) == (KEY.thumbprint(), NOW, None)


def test_each_proof_has_its_own_id_and_contains_the_nonce() -> None:
    made = [make_proof(KEY, "POST", URL, NOW, token=TOKEN, nonce="n") for _ in range(2)]
    proofs = [check_proof(one, "POST", URL, NOW, token=TOKEN) for one in made]
    assert proofs[0].id != proofs[1].id
    assert proofs[0].nonce == "n"


BAD: dict[str, str] = {
    "nothing": "",
    "text": "no proof",
    "two of them": ", ".join([signed({}, GOOD)] * 2),
    "no jti": signed({}, GOOD | {"jti": None}),
    "empty jti": signed({}, GOOD | {"jti": ""}),
    "no htm": signed({}, GOOD | {"htm": None}),
    "another method": signed({}, GOOD | {"htm": "GET"}),
    "no htu": signed({}, GOOD | {"htu": None}),
    "another path": signed({}, GOOD | {"htu": "https://rs.example/other"}),
    "another host": signed({}, GOOD | {"htu": "https://evil.example/mcp"}),
    "no iat": signed({}, GOOD | {"iat": None}),
    "iat as text": signed({}, GOOD | {"iat": str(NOW)}),
    "a time beyond all numbers": signed({}, GOOD | {"iat": 10**400}),
    "too old": signed({}, GOOD | {"iat": NOW - 301}),
    "too new": signed({}, GOOD | {"iat": NOW + 301}),
    "no ath": signed({}, GOOD | {"ath": None}),
    "another token": signed({}, GOOD | {"ath": token_hash("another")}),
    "another type": signed({"typ": "JWT"}, GOOD),
    "no type": signed({"typ": None}, GOOD),
    "no key": signed({"jwk": None}, GOOD),
    "a private key": signed({"jwk": KEY.as_dict(private=True)}, GOOD),
    "another key": signed({"jwk": new_key().as_dict(private=False)}, GOOD),
    "a secret": signed({"alg": "HS256", "jwk": {"kty": "oct", "k": "c2VjcmV0" * 8}}, GOOD, OctKey.generate_key(256)),
    "critical": signed({"crit": ["b64"], "b64": True}, GOOD),
}


def proves(text: str) -> bool:
    try:
        check_proof(text, "POST", URL, NOW, token=TOKEN)
    except BadProof:
        return False
    return True


def test_invalid_proofs_are_refused() -> None:
    assert [name for name, text in BAD.items() if proves(text)] == []


def test_a_proof_with_an_rsa_key_is_accepted() -> None:
    text = signed({"alg": "RS256"}, GOOD, rsa())
    assert check_proof(text, "POST", URL, NOW, token=TOKEN).thumbprint == rsa().thumbprint()


def test_urls_are_compared_after_normalization() -> None:
    text = signed({}, GOOD | {"htu": "HTTPS://RS.example:443/mcp?x=1"})
    assert check_proof(text, "POST", URL, NOW, token=TOKEN).id == "one"


def test_the_target_has_a_path_and_no_query() -> None:
    assert htu_of("https://as.example?x=1#y") == "https://as.example/"


def test_the_thumbprint_matches_the_example_of_the_rfc() -> None:
    jwk = {
        "kty": "EC",
        "crv": "P-256",
        "x": "l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs",
        "y": "9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA",
    }
    assert ECKey.import_key(jwk).thumbprint() == "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"
