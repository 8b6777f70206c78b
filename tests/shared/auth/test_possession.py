"""Tokens that are bound to a key: proofs, their single use, and nonces."""

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


def refused(result: Principal | Denial, scheme: str, error: str) -> bool:
    return (
        isinstance(result, Denial)
        and result.status == 401
        and result.challenge.startswith(f'{scheme} error="{error}"')
    )


def proven(token: str, now: float, nonce: str | None = None) -> HttpRequest:
    """A request with a token and a new proof for it."""
    proof = make_proof(KEY, "POST", RESOURCE, now, token=token, nonce=nonce)
    return request(authorization=f"DPoP {token}", dpop=proof)


async def test_a_bound_token_sent_as_bearer_is_refused() -> None:
    async with issuing() as issuer:
        result = await trusting(issuer).authenticate(request(authorization=f"Bearer {issuer.sign(**BOUND)}"))
    assert refused(result, "DPoP", "invalid_token")


async def test_a_repeated_proof_is_refused_for_a_cached_token() -> None:
    clock = Clock()
    async with issuing() as issuer:
        tokens, incoming = trusting(issuer, clock=clock), proven(issuer.sign(**BOUND), clock.now)
        assert isinstance(await tokens.authenticate(incoming), Principal)
        assert refused(await tokens.authenticate(incoming), "DPoP", "invalid_dpop_proof")


async def test_a_proof_repeated_at_another_replica_is_refused() -> None:
    clock, blobs = Clock(), MemoryBlobs()
    async with issuing() as issuer:
        here, there, token = trusting(issuer, clock=clock), trusting(issuer, clock=clock), issuer.sign(**BOUND)
        first, second = (replace(proven(token, clock.now), claim=blobs.claim) for _ in range(2))
        assert isinstance(await here.authenticate(first), Principal)
        assert refused(await there.authenticate(first), "DPoP", "invalid_dpop_proof")
        assert isinstance(await there.authenticate(second), Principal)


async def test_a_proof_is_claimed_for_longer_than_it_is_valid() -> None:
    clock, claimed = Clock(), list[float]()

    async def claim(_name: str, seconds: float) -> bool:
        claimed.append(seconds)
        return True

    async with issuing() as issuer:
        for ahead in (-WINDOW_SECONDS, 0.0, WINDOW_SECONDS):
            incoming = replace(proven(issuer.sign(**BOUND), clock.now + ahead), claim=claim)
            assert isinstance(await trusting(issuer, clock=clock).authenticate(incoming), Principal)
    assert claimed == [WINDOW_SECONDS, 2 * WINDOW_SECONDS, 3 * WINDOW_SECONDS]


async def test_proofs_are_refused_while_the_shared_store_is_unavailable() -> None:
    async def claim(_name: str, _seconds: float) -> bool:
        raise Unavailable

    clock = Clock()
    async with issuing() as issuer:
        tokens = trusting(issuer, clock=clock)
        result = await tokens.authenticate(replace(proven(issuer.sign(**BOUND), clock.now), claim=claim))
        assert isinstance(result, Denial)
        assert (result.status, dict(result.headers)["retry-after"]) == (503, "2")
        bearer = replace(request(authorization=f"Bearer {issuer.sign()}"), claim=claim)
        assert isinstance(await tokens.authenticate(bearer), Principal)


async def test_replicas_with_the_same_key_accept_nonces_of_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    async with issuing() as issuer:
        options = ProtectionOptions(auth_issuer=[issuer.url], auth_dpop="nonce")
        replicas = []
        for key in ("the key of all", "the key of all", "another"):
            monkeypatch.setenv("MCP_STATE_KEY", key)
            replicas.append(authenticator_of(options, StaticTokens(())))
        token, now = issuer.sign(**BOUND), Clock().now
        result = await replicas[0].authenticate(proven(token, now))
        assert isinstance(result, Denial)
        nonce = dict(result.headers)["dpop-nonce"]
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


async def test_invalid_proofs_are_denied() -> None:
    clock = Clock()
    async with issuing() as issuer:
        tokens, token = trusting(issuer, clock=clock), issuer.sign(**BOUND)
        for name, sent in proofs(token, clock.now).items():
            result = await tokens.authenticate(request(authorization=f"DPoP {token}", **sent))
            assert refused(result, "DPoP", "invalid_dpop_proof"), name


async def test_an_unbound_token_with_a_proof_is_refused() -> None:
    async with issuing() as issuer:
        result = await trusting(issuer).authenticate(proven(issuer.sign(), Clock().now))
    assert refused(result, "DPoP", "invalid_token")


async def test_a_bad_token_has_the_challenge_of_its_scheme() -> None:
    async with issuing() as issuer:
        token = issuer.sign(aud="https://other.example", **BOUND)
        result = await trusting(issuer).authenticate(request(authorization=f"DPoP {token}"))
    assert refused(result, "DPoP", "invalid_token")
    assert isinstance(result, Denial)
    assert "ES256" in result.challenge


@pytest.mark.parametrize("mode", ["required", "nonce"])
async def test_bearer_tokens_are_refused_if_proofs_are_required(mode: Any) -> None:
    async with issuing() as issuer:
        tokens = trusting(issuer, possession=Possession(mode))
        result = await tokens.authenticate(request(authorization=f"Bearer {issuer.sign()}"))
    assert refused(result, "DPoP", "invalid_token")


async def test_a_proof_without_the_current_nonce_gets_the_nonce() -> None:
    clock = Clock()
    async with issuing() as issuer:
        tokens = trusting(issuer, clock=clock, possession=Possession("nonce"))
        token = issuer.sign(exp=int(clock.now) + 3_600, **BOUND)
        for stale in (None, "made-up"):
            sent = proven(token, clock.now, stale)
            for _ in range(2):  # the proof does not count as used
                result = await tokens.authenticate(sent)
                assert refused(result, "DPoP", "use_dpop_nonce")
        assert isinstance(result, Denial)
        nonce = dict(result.headers)["dpop-nonce"]
        assert isinstance(await tokens.authenticate(proven(token, clock.now, nonce)), Principal)
        clock.now += 601
        assert refused(await tokens.authenticate(proven(token, clock.now, nonce)), "DPoP", "use_dpop_nonce")
