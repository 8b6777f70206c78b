"""Who is told by a token, against an authorization server over sockets: good tokens, and where a token has to be."""

import logging
import time

import pytest
from joserfc.errors import SecurityWarning
from joserfc.jwk import OKPKey

from shared.auth.authenticators import OAuthTokens
from shared.auth.claims import ClaimRules
from shared.auth.issuers import Issuer
from shared.auth.jwt import JwtTokens
from shared.auth.possession import Possession
from shared.auth.web import Web
from shared.protocol.http.rules import Denial, Headers, HttpRequest
from shared.protocol.identity import Principal
from tests.shared.auth.issuing import METADATA, PROTECTED, Clock, bear, issuing, request, rsa, trusting


class Own:
    """The operator's own token."""

    def owner_of(self, token: str) -> Principal | None:
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
    assert (client.name, person.name) == ("client:alice", "alice")


async def test_a_subject_that_is_named_like_a_client_is_nobody() -> None:
    async with issuing() as issuer:
        assert isinstance(await bear(trusting(issuer), issuer.sign(sub="client:alice")), Denial)


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


async def test_a_token_that_ends_before_its_next_check_is_not_valid_meanwhile() -> None:
    clock = Clock()
    async with issuing() as issuer:
        tokens, token = trusting(issuer, clock=clock), issuer.sign(exp=int(clock.now) + 100)
        assert isinstance(await bear(tokens, token), Principal)
        clock.now += 161  # of a clock that may differ by a minute
        assert isinstance(await bear(tokens, token), Denial)


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


async def test_no_more_tokens_than_fit_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    # To sign and check as many tokens as really fit takes seconds.
    monkeypatch.setattr("shared.auth.authenticators.MAX_CACHED", 2)
    async with issuing() as issuer:
        tokens = trusting(issuer)
        sent = [request(authorization=f"Bearer {issuer.sign(jti=str(n))}") for n in range(3)]
        for one in sent:
            await tokens.authenticate(one)
        assert [tokens.knows(one) for one in sent] == [False, True, True]
