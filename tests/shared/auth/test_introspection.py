"""Opaque tokens, which the issuer introspects."""

import asyncio

import pytest

from shared.auth.authenticators import OAuthTokens
from shared.auth.claims import ClaimRules
from shared.auth.introspection import Introspection
from shared.auth.issuers import Issuer
from shared.auth.possession import Possession
from shared.auth.web import Web
from shared.protocol.http.rules import Denial
from shared.protocol.identity import Principal
from tests.clock import forward
from tests.shared.auth.issuing import RESOURCE, Clock, bear, issuing
from tests.shared.auth.sites import Answer, Naming, Silence, as_json
from tests.shared.auth.test_issuers import METADATA


def introspecting(url: str, clock: Clock, patience: float = 2) -> OAuthTokens:
    web = Web(timeout=patience)
    checker = Introspection(Issuer(url, web, clock=clock), "the server", "a+secret", ClaimRules(), web)
    return OAuthTokens(checker, Possession(), cache_seconds=60, clock=clock)


async def test_an_opaque_token_is_introspected_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with issuing() as issuer:
        issuer.active["opaque"] = {"active": True, "aud": RESOURCE, "sub": "alice", "scope": "x"}
        tokens = introspecting(issuer.url, Clock())
        naming = Naming(monkeypatch)
        result = [await bear(tokens, "opaque") for _ in range(3)]
        received = [one for one in issuer.site.received if one.path == "/introspect"]
    assert isinstance(result[0], Principal)
    assert result[0].scopes == {"x"}
    assert [one.headers["authorization"] for one in received] == ["Basic dGhlK3NlcnZlcjphJTJCc2VjcmV0"]
    assert naming.urls == {(f"{issuer.url}{METADATA}", None), (f"{issuer.url}/introspect", issuer.url)}


async def test_concurrent_requests_share_an_introspection() -> None:
    async with issuing() as issuer:
        issuer.active["opaque"] = {"active": True, "aud": RESOURCE, "sub": "alice"}
        tokens = introspecting(issuer.url, Clock())
        result = await asyncio.gather(*(bear(tokens, "opaque") for _ in range(20)))
        assert len({id(one) for one in result}) == 1
        assert issuer.site.count("/introspect") == 1


async def test_an_introspection_is_cached_for_a_minute() -> None:
    clock = Clock()
    async with issuing() as issuer:
        issuer.active["opaque"] = {"active": True, "aud": RESOURCE, "sub": "alice"}
        tokens = introspecting(issuer.url, clock)
        assert isinstance(await bear(tokens, "opaque"), Principal)
        issuer.active.clear()
        assert isinstance(await bear(tokens, "opaque"), Principal)
        clock.now += 61
        assert isinstance(await bear(tokens, "opaque"), Denial)


ANSWERS: list[Answer] = [
    *(
        as_json(answer)
        for answer in (
            {"active": False, "aud": RESOURCE, "sub": "alice"},
            {"active": "true", "aud": RESOURCE, "sub": "alice"},
            {"aud": RESOURCE, "sub": "alice"},
            {"active": True, "sub": "alice"},
            {"active": True, "aud": "https://other.example", "sub": "alice"},
            {"active": True, "aud": RESOURCE},
            {"active": True, "aud": RESOURCE, "sub": "alice", "iss": "https://other.example"},
            {"active": True, "aud": RESOURCE, "sub": "alice", "exp": 1},
            {"active": True, "aud": RESOURCE, "sub": "alice", "cnf": {"jkt": "x"}},
        )
    ),
    as_json({"error": "unsupported_token_type"}, 400),
]
"""Introspection answers for tokens that must be denied."""


async def test_invalid_introspection_answers_are_denied() -> None:
    async with issuing() as issuer:
        for answer, status in [
            *((answer, 401) for answer in ANSWERS),
            (as_json({"error": "invalid_client"}, 401), 503),
        ]:
            issuer.put("/introspect", answer)
            result = await bear(introspecting(issuer.url, Clock()), "opaque")
            assert isinstance(result, Denial)
            assert result.status == status, answer


async def test_concurrent_requests_share_the_timeout_of_an_introspection() -> None:
    async with issuing() as issuer:
        issuer.answers["/introspect"] = silence = Silence()
        tokens = introspecting(issuer.url, Clock(), patience=10)
        asking = asyncio.gather(*(bear(tokens, "opaque") for _ in range(20)))
        await silence.received.wait()
        forward(10)
        assert {one.status for one in await asking if isinstance(one, Denial)} == {503}
        assert issuer.site.count("/introspect") == 1
