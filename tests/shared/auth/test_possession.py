"""Tokens that are bound to a key: who has it gets in, once with each proof."""

from dataclasses import replace
from typing import Any

import pytest

from shared.auth.dpop import WINDOW_SECONDS, make_proof, new_key
from shared.auth.possession import Possession
from shared.auth.tokens import StaticTokens
from shared.errors import Unavailable
from shared.program.authorization import authenticator_of
from shared.program.protection import ProtectionOptions
from shared.protocol.http.rules import Denial, HttpRequest
from shared.protocol.identity import Principal
from shared.stores.memory_blobs import MemoryBlobs
from tests.shared.auth.issuing import RESOURCE, Clock, issuing, request, trusting

KEY = new_key()
BOUND = {"cnf": {"jkt": KEY.thumbprint()}}


def refused(told: Principal | Denial, scheme: str, error: str) -> bool:
    return isinstance(told, Denial) and told.status == 401 and told.challenge.startswith(f'{scheme} error="{error}"')


def proven(token: str, now: float, nonce: str | None = None) -> HttpRequest:
    """A request with that token and a new proof for it."""
    proof = make_proof(KEY, "POST", RESOURCE, now, token=token, nonce=nonce)
    return request(authorization=f"DPoP {token}", dpop=proof)


async def test_a_bound_token_as_that_of_a_bearer_is_refused() -> None:
    async with issuing() as issuer:
        told = await trusting(issuer).authenticate(request(authorization=f"Bearer {issuer.sign(**BOUND)}"))
    assert refused(told, "DPoP", "invalid_token")


async def test_a_proof_counts_once_also_for_a_token_seen_before() -> None:
    clock = Clock()
    async with issuing() as issuer:
        tokens, asked = trusting(issuer, clock=clock), proven(issuer.sign(**BOUND), clock.now)
        assert isinstance(await tokens.authenticate(asked), Principal)
        assert refused(await tokens.authenticate(asked), "DPoP", "invalid_dpop_proof")


async def test_a_proof_counts_once_over_all_replicas() -> None:
    clock, blobs = Clock(), MemoryBlobs()
    async with issuing() as issuer:
        here, there, token = trusting(issuer, clock=clock), trusting(issuer, clock=clock), issuer.sign(**BOUND)
        first, second = (replace(proven(token, clock.now), claim=blobs.claim) for _ in range(2))
        assert isinstance(await here.authenticate(first), Principal)
        assert refused(await there.authenticate(first), "DPoP", "invalid_dpop_proof")
        assert isinstance(await there.authenticate(second), Principal)


async def test_a_proof_is_claimed_for_longer_than_it_counts_anywhere() -> None:
    clock, claimed = Clock(), list[float]()

    async def claim(_name: str, seconds: float) -> bool:
        claimed.append(seconds)
        return True

    async with issuing() as issuer:
        for ahead in (-WINDOW_SECONDS, 0.0, WINDOW_SECONDS):
            asked = replace(proven(issuer.sign(**BOUND), clock.now + ahead), claim=claim)
            assert isinstance(await trusting(issuer, clock=clock).authenticate(asked), Principal)
    assert claimed == [WINDOW_SECONDS, 2 * WINDOW_SECONDS, 3 * WINDOW_SECONDS]


async def test_a_proof_that_others_may_have_seen_does_not_count_while_they_can_not_be_asked() -> None:
    async def claim(_name: str, _seconds: float) -> bool:
        raise Unavailable

    clock = Clock()
    async with issuing() as issuer:
        tokens = trusting(issuer, clock=clock)
        told = await tokens.authenticate(replace(proven(issuer.sign(**BOUND), clock.now), claim=claim))
        assert isinstance(told, Denial)
        assert (told.status, dict(told.headers)["retry-after"]) == (503, "2")
        bearer = replace(request(authorization=f"Bearer {issuer.sign()}"), claim=claim)
        assert isinstance(await tokens.authenticate(bearer), Principal)


async def test_any_replica_takes_the_nonces_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    async with issuing() as issuer:
        options = ProtectionOptions(auth_issuer=[issuer.url], auth_dpop="nonce")
        replicas = []
        for key in ("the key of all", "the key of all", "another"):
            monkeypatch.setenv("MCP_STATE_KEY", key)
            replicas.append(authenticator_of(options, StaticTokens(())))
        token, now = issuer.sign(**BOUND), Clock().now
        told = await replicas[0].authenticate(proven(token, now))
        assert isinstance(told, Denial)
        nonce = dict(told.headers)["dpop-nonce"]
        assert isinstance(await replicas[1].authenticate(proven(token, now, nonce)), Principal)
        assert isinstance(await replicas[2].authenticate(proven(token, now, nonce)), Denial)


def proofs(token: str, now: float) -> dict[str, dict[str, Any]]:
    good = make_proof(KEY, "POST", RESOURCE, now, token=token)
    other = make_proof(KEY, "POST", RESOURCE, now, token=token)
    return {
        "none": {},
        "empty": {"dpop": ""},
        "two": {"dpop": f"{good}, {other}"},
        "by another key": {"dpop": make_proof(new_key(), "POST", RESOURCE, now, token=token)},
        "for another method": {"dpop": make_proof(KEY, "GET", RESOURCE, now, token=token)},
        "for another URL": {"dpop": make_proof(KEY, "POST", f"{RESOURCE}2", now, token=token)},
        "for another token": {"dpop": make_proof(KEY, "POST", RESOURCE, now, token="other")},
        "for no token": {"dpop": make_proof(KEY, "POST", RESOURCE, now)},
        "too old": {"dpop": make_proof(KEY, "POST", RESOURCE, now - 301, token=token)},
        "too new": {"dpop": make_proof(KEY, "POST", RESOURCE, now + 302, token=token)},
    }


async def test_what_is_no_proof_lets_nobody_in() -> None:
    clock = Clock()
    async with issuing() as issuer:
        tokens, token = trusting(issuer, clock=clock), issuer.sign(**BOUND)
        for name, sent in proofs(token, clock.now).items():
            told = await tokens.authenticate(request(authorization=f"DPoP {token}", **sent))
            assert refused(told, "DPoP", "invalid_dpop_proof"), name


async def test_a_token_that_is_not_bound_is_none_to_prove_anything_for() -> None:
    async with issuing() as issuer:
        told = await trusting(issuer).authenticate(proven(issuer.sign(), Clock().now))
    assert refused(told, "DPoP", "invalid_token")


async def test_a_bad_token_has_the_challenge_of_its_scheme() -> None:
    async with issuing() as issuer:
        token = issuer.sign(aud="https://other.example", **BOUND)
        told = await trusting(issuer).authenticate(request(authorization=f"DPoP {token}"))
    assert refused(told, "DPoP", "invalid_token")
    assert isinstance(told, Denial)
    assert "ES256" in told.challenge


@pytest.mark.parametrize("mode", ["required", "nonce"])
async def test_where_proofs_are_required_bearers_get_nothing(mode: Any) -> None:
    async with issuing() as issuer:
        tokens = trusting(issuer, possession=Possession(mode))
        told = await tokens.authenticate(request(authorization=f"Bearer {issuer.sign()}"))
    assert refused(told, "DPoP", "invalid_token")


async def test_a_proof_without_our_nonce_is_told_of_it() -> None:
    clock = Clock()
    async with issuing() as issuer:
        tokens = trusting(issuer, clock=clock, possession=Possession("nonce"))
        token = issuer.sign(exp=int(clock.now) + 3_600, **BOUND)
        for stale in (None, "made-up"):
            sent = proven(token, clock.now, stale)
            for _ in range(2):  # it does not count as used
                told = await tokens.authenticate(sent)
                assert refused(told, "DPoP", "use_dpop_nonce")
        assert isinstance(told, Denial)
        nonce = dict(told.headers)["dpop-nonce"]
        assert isinstance(await tokens.authenticate(proven(token, clock.now, nonce)), Principal)
        clock.now += 601
        assert refused(await tokens.authenticate(proven(token, clock.now, nonce)), "DPoP", "use_dpop_nonce")
