"""Who is told by a token, against an authorization server over sockets: good tokens, and where a token has to be."""

import asyncio
import logging
import time

import pytest
from joserfc.errors import SecurityWarning
from joserfc.jwk import OKPKey

from shared.auth.authenticators import OAuthTokens
from shared.auth.claims import ClaimRules
from shared.auth.introspection import Introspection
from shared.auth.issuers import Issuer
from shared.auth.jwt import JwtTokens
from shared.auth.possession import Possession
from shared.auth.web import Web
from shared.protocol.http.rules import Denial, Headers, HttpRequest
from shared.protocol.identity import Principal
from tests.shared.auth.issuing import METADATA, PROTECTED, RESOURCE, Clock, bear, issuing, request, rsa, trusting
from tests.shared.auth.sites import Asked, Said, said


class Own:
    """The operator's own token."""

    def known(self, token: str) -> Principal | None:
        return Principal("token-own") if token == "own" else None


async def test_a_good_token_tells_who_sends_it() -> None:
    async with issuing() as issuer:
        expires = int(time.time()) + 600
        told = await bear(trusting(issuer), issuer.sign(exp=expires))
    assert isinstance(told, Principal)
    assert told.key == f"{issuer.url}#alice"
    assert (told.name, told.client, told.scopes) == ("alice", "app", frozenset(["notes:read"]))
    assert told.expires == expires + 60


@pytest.mark.parametrize(("claims", "name"), [({"email": "a@b"}, "a@b"), ({"email": ""}, None), ({}, None)])
async def test_who_has_not_the_claim_that_names_principals_is_nobody(
    claims: dict[str, str], name: str | None
) -> None:
    """Or the rules for that principal would not apply."""
    async with issuing() as issuer:
        tokens = JwtTokens([Issuer(issuer.url, Web())], ClaimRules(principal_claim="email"))
        told = await bear(OAuthTokens(tokens, Possession()), issuer.sign(**claims))
    assert isinstance(told, Principal if name else Denial)
    assert name is None or (isinstance(told, Principal) and told.name == name)


async def test_other_headers_algorithms_and_several_audiences_are_taken() -> None:
    async with issuing() as issuer:
        tokens = trusting(issuer)
        headers: list[dict[str, str | None]] = [{"typ": None}, {"typ": "JWT"}, {"typ": "application/AT+JWT"}]
        taken = [issuer.sign(header) for header in [*headers, {"kid": None}]]
        taken += [issuer.sign(key=rsa()), issuer.sign({"alg": "PS384"}, key=rsa())]
        for token in [*taken, issuer.sign(aud=["x", "HTTPS://RS.example/mcp/"])]:
            assert isinstance(await bear(tokens, token), Principal)


async def test_edwards_curves_are_taken_under_either_name() -> None:
    key = OKPKey.generate_key("Ed25519", {"kid": "ed"}, private=True)
    async with issuing() as issuer:
        issuer.keys = [key]
        tokens = trusting(issuer)
        assert isinstance(await bear(tokens, issuer.sign({"alg": "Ed25519"}, key=key)), Principal)
        with pytest.warns(SecurityWarning):
            old = issuer.sign({"alg": "EdDSA"}, key=key)
        assert isinstance(await bear(tokens, old), Principal)


async def test_the_scopes_of_a_token() -> None:
    scopes: list[tuple[dict[str, object], set[str]]] = [
        ({"scope": None}, set()),
        ({"scope": "a  b"}, {"a", "b"}),
        ({"scope": None, "scp": "a b"}, {"a", "b"}),
        ({"scope": None, "scp": ["a", "b"]}, {"a", "b"}),
    ]
    async with issuing() as issuer:
        for claims, found in scopes:
            told = await bear(trusting(issuer), issuer.sign(**claims))
            assert isinstance(told, Principal)
            assert told.scopes == found


async def test_a_client_without_a_subject_is_no_subject_of_its_name() -> None:
    async with issuing() as issuer:
        tokens = trusting(issuer)
        client = await bear(tokens, issuer.sign(sub=None, client_id="alice"))
        person = await bear(tokens, issuer.sign(sub="alice"))
    assert isinstance(client, Principal)
    assert isinstance(person, Principal)
    assert client.key != person.key


async def test_two_issuers_have_principals_of_their_own() -> None:
    async with issuing() as one, issuing() as other:
        tokens = trusting(one, other)
        told = [await bear(tokens, issuer.sign()) for issuer in (one, other)]
    keys = {who.key for who in told if isinstance(who, Principal)}
    names = {who.name for who in told if isinstance(who, Principal)}
    assert keys == names == {f"{one.url}#alice", f"{other.url}#alice"}


async def test_a_token_seen_before_has_the_same_principal_and_costs_no_look_at_it() -> None:
    async with issuing() as issuer:
        tokens, token = trusting(issuer), issuer.sign()
        asked = request(authorization=f"Bearer {token}")
        assert not tokens.knows(asked)
        told = await tokens.authenticate(asked)
        assert tokens.knows(asked)
        assert await tokens.authenticate(asked) is told


async def test_a_token_is_looked_at_again_after_a_while_and_ends_when_it_expires() -> None:
    clock = Clock()
    async with issuing() as issuer:
        tokens, token = trusting(issuer, clock=clock), issuer.sign()
        asked = request(authorization=f"Bearer {token}")
        await tokens.authenticate(asked)
        clock.now += 301
        assert not tokens.knows(asked)
        assert isinstance(await tokens.authenticate(asked), Principal)
        clock.now += 400
        assert isinstance(await tokens.authenticate(asked), Denial)


async def test_what_is_kept_for_one_resource_is_not_good_for_another() -> None:
    async with issuing() as issuer:
        tokens, token = trusting(issuer), issuer.sign()
        assert isinstance(await bear(tokens, token), Principal)
        other = type(PROTECTED)("https://rs.example/b", METADATA, frozenset(["https://rs.example/b"]), list)
        headers = Headers({"authorization": f"Bearer {token}"})
        assert isinstance(await tokens.authenticate(HttpRequest("POST", "/b", headers, resource=other)), Denial)


async def test_the_operators_own_tokens_stay() -> None:
    async with issuing() as issuer:
        tokens = trusting(issuer, own=Own())
        assert await bear(tokens, "own") == Principal("token-own")
        assert await tokens.authenticate(request(x_api_key="own")) == Principal("token-own")
        assert tokens.knows(request(authorization="Bearer own"))
        assert not issuer.site.asked


# Where a token has to be


NONE = f'Bearer resource_metadata="{METADATA}", scope="notes:read"'
PLACES: list[tuple[dict[str, str], bytes, int, str]] = [
    ({}, b"", 401, NONE),
    ({"authorization": "Basic YTpi"}, b"", 401, NONE),
    *(({"authorization": f"Bearer{rest}"}, b"", 400, 'error="invalid_request"') for rest in ("", " a b", " \u00e9")),
    ({"authorization": "Bearer abc"}, b"", 401, 'error="invalid_token"'),
    ({"authorization": "DPoP a b"}, b"", 401, 'DPoP error="invalid_token"'),
    ({"x_api_key": "GOOD"}, b"", 401, 'error="invalid_token"'),
    ({}, b"access_token=GOOD", 400, 'error="invalid_request"'),
    ({"authorization": "Bearer GOOD"}, b"a=b&access_token=GOOD", 400, 'error="invalid_request"'),
    ({"authorization": "Bearer GOOD"}, b"%61ccess_token=GOOD", 400, 'error="invalid_request"'),
]


async def test_where_a_token_does_not_count() -> None:
    async with issuing() as issuer:
        good = issuer.sign()
        for headers, query, status, words in PLACES:
            sent = {name: value.replace("GOOD", good) for name, value in headers.items()}
            told = await trusting(issuer).authenticate(request(query=query.replace(b"GOOD", good.encode()), **sent))
            assert isinstance(told, Denial)
            assert (told.status, words in told.challenge) == (status, True), (headers, query)
            assert good not in told.reason + told.challenge


async def test_two_authorization_headers_are_refused() -> None:
    async with issuing() as issuer:
        headers = Headers({"authorization": f"Bearer {issuer.sign()}"}, frozenset(["authorization"]))
        told = await trusting(issuer).authenticate(HttpRequest("POST", "/mcp", headers, resource=PROTECTED))
    assert isinstance(told, Denial)
    assert told.status == 400


async def test_neither_answers_nor_logs_have_anything_of_a_token(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with issuing() as issuer:
        tokens = trusting(issuer)
        for token in (issuer.sign(aud="other"), issuer.sign(), issuer.sign()[:-3] + "AAA"):
            told = await bear(tokens, token)
            payload = token.split(".")[1]
            assert payload not in repr(told)
            assert payload not in caplog.text


# Introspection


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


async def test_no_more_tokens_than_fit_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    # To sign and check as many tokens as really fit takes seconds.
    monkeypatch.setattr("shared.auth.authenticators.MAX_CACHED", 2)
    async with issuing() as issuer:
        tokens = trusting(issuer)
        sent = [request(authorization=f"Bearer {issuer.sign(jti=str(n))}") for n in range(3)]
        for one in sent:
            await tokens.authenticate(one)
        assert [tokens.knows(one) for one in sent] == [False, True, True]


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
    async def never(asked: Asked) -> Said:
        await asyncio.sleep(60)
        return Said()

    async with issuing() as issuer:
        issuer.answers["/introspect"] = never
        tokens = introspecting(issuer.url, Clock(), patience=0.1)
        told = await asyncio.gather(*(bear(tokens, "opaque") for _ in range(20)))
        assert {one.status for one in told if isinstance(one, Denial)} == {503}
        assert issuer.site.count("/introspect") == 1
