"""Proofs of possession, and what is none."""

from typing import Any

from joserfc import jwt
from joserfc.jwk import ECKey, OctKey

from shared.auth.dpop import BadProof, Proof, check_proof, make_proof, new_key, target, token_hash
from shared.auth.replay import MAX_KEYS_OF_OWNER, Nonces, SeenProofs
from tests.shared.auth.issuing import rsa

URL, NOW, TOKEN = "https://rs.example/mcp", 1_800_000_000.0, "the-token"
KEY = new_key()
GOOD: dict[str, Any] = {"jti": "one", "htm": "POST", "htu": URL, "iat": NOW, "ath": token_hash(TOKEN)}


def signed(header: dict[str, Any], claims: dict[str, Any], key: Any = KEY) -> str:
    whole = {"typ": "dpop+jwt", "alg": "ES256", "jwk": key.as_dict(private=False), **header}
    kept = {name: value for name, value in claims.items() if value is not None}
    present = {name: value for name, value in whole.items() if value is not None}
    return jwt.encode(present, kept, key, algorithms=["ES256", "HS256", "RS256"], default_type=None)


def test_a_proof_that_was_made_is_taken() -> None:
    proof = check_proof(make_proof(KEY, "POST", f"{URL}?q=1#f", NOW, token=TOKEN), "POST", URL, NOW, token=TOKEN)
    assert (proof.thumbprint, proof.at, proof.nonce) == (KEY.thumbprint(), NOW, None)


def test_no_two_proofs_are_the_same_and_a_nonce_is_in_them() -> None:
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


def test_what_proves_nothing() -> None:
    assert [name for name, text in BAD.items() if proves(text)] == []


def test_other_kinds_of_keys_prove_as_well() -> None:
    text = signed({"alg": "RS256"}, GOOD, rsa())
    assert check_proof(text, "POST", URL, NOW, token=TOKEN).thumbprint == rsa().thumbprint()


def test_urls_are_compared_as_what_they_name() -> None:
    text = signed({}, GOOD | {"htu": "HTTPS://RS.example:443/mcp?x=1"})
    assert check_proof(text, "POST", URL, NOW, token=TOKEN).id == "one"


def test_the_target_has_a_path_and_no_query() -> None:
    assert target("https://as.example?x=1#y") == "https://as.example/"


def test_the_thumbprint_is_that_of_the_rfc() -> None:
    jwk = {
        "kty": "EC",
        "crv": "P-256",
        "x": "l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs",
        "y": "9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA",
    }
    assert ECKey.import_key(jwk).thumbprint() == "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"


# What counts once


def proof(number: int, at: float = NOW, key: str = "key") -> Proof:
    return Proof(key, f"proof {number}", at, None)


def test_a_proof_counts_once() -> None:
    seen = SeenProofs()
    assert seen.add(proof(1), "ada", NOW)
    assert not seen.add(proof(1), "ada", NOW + 1)
    assert seen.add(proof(1, key="another"), "ada", NOW)


def test_what_is_too_old_to_be_sent_again_is_forgotten() -> None:
    seen = SeenProofs()
    seen.add(proof(1), "ada", NOW)
    seen.add(proof(2, at=NOW + 700), "ada", NOW + 700)
    assert len(seen) == 1


def test_a_key_of_too_many_proofs_has_its_older_ones_refused() -> None:
    seen = SeenProofs(max_of_key=3)
    assert all(seen.add(proof(n, at=NOW + n), "ada", NOW + n) for n in range(5))
    assert len(seen) == 3
    assert not seen.add(proof(0), "ada", NOW + 5)
    assert not seen.add(proof(77, at=NOW), "ada", NOW + 5)
    assert seen.add(proof(0, key="another"), "ada", NOW + 5)


def test_all_keys_together_have_a_bound_which_the_busiest_pays_for() -> None:
    seen = SeenProofs(max_proofs=4)
    assert all(seen.add(proof(n, at=NOW + n), "ada", NOW) for n in range(4))
    assert seen.add(proof(1, key="another"), "ada", NOW)
    assert len(seen) == 4
    assert not seen.add(proof(1, key="another"), "ada", NOW)
    assert not seen.add(proof(0), "ada", NOW)


def test_no_more_keys_than_can_be_kept_are_taken() -> None:
    seen = SeenProofs(max_keys=2)
    assert seen.add(proof(1, key="a"), "ada", NOW)
    assert seen.add(proof(1, key="b"), "ada", NOW)
    assert not seen.add(proof(1, key="c"), "ada", NOW)
    assert seen.add(proof(1, key="c", at=NOW + 400), "ada", NOW + 400)


def test_nonces_are_ours_for_a_while() -> None:
    nonces = Nonces(b"k" * 32, seconds=100)
    nonce = nonces.current(NOW)
    assert nonces.is_ours(nonce, NOW + 100)
    assert not nonces.is_ours(nonce, NOW + 200)
    assert Nonces(b"k" * 32, seconds=100).is_ours(nonce, NOW)
    assert not Nonces(seconds=100).is_ours(nonce, NOW)
    assert not any(nonces.is_ours(one, NOW) for one in (None, "", "\u00e9", nonce[:-1]))


def test_nobody_has_all_the_keys() -> None:
    seen = SeenProofs()
    own = [seen.add(proof(1, key=f"own {n}"), "ada", NOW) for n in range(MAX_KEYS_OF_OWNER + 1)]
    assert own == [*[True] * MAX_KEYS_OF_OWNER, False]
    assert seen.add(proof(1, key="hers"), "grace", NOW)
    later = NOW + 400
    assert seen.add(proof(1, key="another", at=later), "ada", later)
