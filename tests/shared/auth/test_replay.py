"""Replay protection: proofs that were already used, and nonces."""

from shared.auth.dpop import Proof
from shared.auth.replay import MAX_KEYS_OF_OWNER, Nonces, SeenProofs

NOW = 1_800_000_000.0


def proof(number: int, at: float = NOW, key: str = "key") -> Proof:
    return Proof(key, f"proof {number}", at, None)


def test_a_proof_is_accepted_once() -> None:
    seen = SeenProofs()
    assert seen.add(proof(1), "ada", NOW)
    assert not seen.add(proof(1), "ada", NOW + 1)
    assert seen.add(proof(1, key="another"), "ada", NOW)


def test_expired_proofs_are_forgotten() -> None:
    seen = SeenProofs()
    seen.add(proof(1), "ada", NOW)
    seen.add(proof(2, at=NOW + 300), "ada", NOW + 300)
    assert [seen.add(proof(n, at=NOW + 400), "ada", NOW + 400) for n in (1, 2)] == [True, False]
    seen.add(proof(3, at=NOW + 1_000), "ada", NOW + 1_000)
    assert len(seen) == 1


def test_a_key_with_too_many_proofs_has_its_older_ones_refused() -> None:
    seen = SeenProofs(max_of_key=3)
    assert all(seen.add(proof(n, at=NOW + n), "ada", NOW + n) for n in range(5))
    assert len(seen) == 3
    assert not seen.add(proof(0), "ada", NOW + 5)
    assert not seen.add(proof(77, at=NOW), "ada", NOW + 5)
    assert seen.add(proof(0, key="another"), "ada", NOW + 5)


def test_the_total_limit_evicts_proofs_of_the_busiest_key() -> None:
    seen = SeenProofs(max_proofs=4)
    assert all(seen.add(proof(n, at=NOW + n), "ada", NOW) for n in range(4))
    assert seen.add(proof(1, key="another"), "ada", NOW)
    assert len(seen) == 4
    assert not seen.add(proof(1, key="another"), "ada", NOW)
    assert not seen.add(proof(0), "ada", NOW)


def test_proofs_of_keys_beyond_the_limit_are_refused() -> None:
    seen = SeenProofs(max_keys=2)
    assert seen.add(proof(1, key="a"), "ada", NOW)
    assert seen.add(proof(1, key="b"), "ada", NOW)
    assert not seen.add(proof(1, key="c"), "ada", NOW)
    assert seen.add(proof(1, key="c", at=NOW + 400), "ada", NOW + 400)


def test_nonces_are_recognized_for_a_limited_time() -> None:
    nonces = Nonces(b"k" * 32, seconds=100)
    nonce = nonces.current(NOW)
    assert nonces.is_valid(nonce, NOW + 100)
    assert not nonces.is_valid(nonce, NOW + 200)
    assert Nonces(b"k" * 32, seconds=100).is_valid(nonce, NOW)
    assert not Nonces(seconds=100).is_valid(nonce, NOW)
    assert not any(nonces.is_valid(one, NOW) for one in (None, "", "\u00e9", nonce[:-1]))


def test_keys_of_each_owner_are_limited() -> None:
    seen = SeenProofs()
    own = [seen.add(proof(1, key=f"own {n}"), "ada", NOW) for n in range(MAX_KEYS_OF_OWNER + 1)]
    assert own == [*[True] * MAX_KEYS_OF_OWNER, False]
    assert seen.add(proof(1, key="hers"), "grace", NOW)
    later = NOW + 400
    assert seen.add(proof(1, key="another", at=later), "ada", later)
