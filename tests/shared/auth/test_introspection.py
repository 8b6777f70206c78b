"""Tokens that mean nothing here: their issuer is asked what they are."""

import asyncio

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
from tests.shared.auth.sites import Said, Silence, said


def introspecting(url: str, clock: Clock, patience: float = 2) -> OAuthTokens:
    web = Web(patience=patience)
    checker = Introspection(Issuer(url, web, clock=clock), "the server", "a+secret", ClaimRules(), web)
    return OAuthTokens(checker, Possession(), keep=60, clock=clock)


async def test_a_token_that_means_nothing_here_is_asked_about() -> None:
    async with issuing() as issuer:
        issuer.active["opaque"] = {"active": True, "aud": RESOURCE, "sub": "alice", "scope": "x"}
        tokens = introspecting(issuer.url, Clock())
        told = [await bear(tokens, "opaque") for _ in range(3)]
        asked = [one for one in issuer.site.asked if one.path == "/introspect"]
    assert isinstance(told[0], Principal)
    assert told[0].scopes == {"x"}
    assert [one.headers["authorization"] for one in asked] == ["Basic dGhlK3NlcnZlcjphJTJCc2VjcmV0"]


async def test_requests_that_come_at_once_have_their_token_asked_about_once() -> None:
    async with issuing() as issuer:
        issuer.active["opaque"] = {"active": True, "aud": RESOURCE, "sub": "alice"}
        tokens = introspecting(issuer.url, Clock())
        told = await asyncio.gather(*(bear(tokens, "opaque") for _ in range(20)))
        assert len({id(one) for one in told}) == 1
        assert issuer.site.count("/introspect") == 1


async def test_an_answer_about_a_token_is_kept_for_a_minute() -> None:
    clock = Clock()
    async with issuing() as issuer:
        issuer.active["opaque"] = {"active": True, "aud": RESOURCE, "sub": "alice"}
        tokens = introspecting(issuer.url, clock)
        assert isinstance(await bear(tokens, "opaque"), Principal)
        issuer.active.clear()
        assert isinstance(await bear(tokens, "opaque"), Principal)
        clock.now += 61
        assert isinstance(await bear(tokens, "opaque"), Denial)


ANSWERS: list[Said] = [
    *(
        said(answer)
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
    said({"error": "unsupported_token_type"}, 400),
]
"""What an issuer says of a token that does not count."""


async def test_what_an_issuer_says_of_a_token_that_does_not_count() -> None:
    async with issuing() as issuer:
        for answer, status in [*((answer, 401) for answer in ANSWERS), (said({"error": "invalid_client"}, 401), 503)]:
            issuer.put("/introspect", answer)
            told = await bear(introspecting(issuer.url, Clock()), "opaque")
            assert isinstance(told, Denial)
            assert told.status == status, answer


async def test_an_issuer_that_does_not_answer_keeps_one_request_waiting_and_not_all_in_turn() -> None:
    async with issuing() as issuer:
        issuer.answers["/introspect"] = silence = Silence()
        tokens = introspecting(issuer.url, Clock(), patience=10)
        asking = asyncio.gather(*(bear(tokens, "opaque") for _ in range(20)))
        await silence.asked.wait()
        forward(10)
        assert {one.status for one in await asking if isinstance(one, Denial)} == {503}
        assert issuer.site.count("/introspect") == 1
