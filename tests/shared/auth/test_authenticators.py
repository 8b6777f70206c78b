"""Principals of tokens, with an authorization server over sockets: valid tokens, caching, and places of tokens."""

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
    """A static token of the operator."""

    def owner_of(self, token: str) -> Principal | None:
        return Principal("token-own") if token == "own" else None


async def test_a_valid_token_gives_a_principal() -> None:
    async with issuing() as issuer:
        expires = int(time.time()) + 600
        result = await bear(trusting(issuer), issuer.sign(exp=expires))
    assert isinstance(result, Principal)
    assert result.key == f"{issuer.url}#alice"
    assert (result.name, result.client, result.scopes) == ("alice", "app", frozenset(["notes:read"]))
    assert result.expires == expires + 60


@pytest.mark.parametrize(("claims", "name"), [({"email": "a@b"}, "a@b"), ({"email": ""}, None), ({}, None)])
async def test_a_token_without_the_principal_claim_is_denied(claims: dict[str, str], name: str | None) -> None:
    """Otherwise the rules for that principal would not apply."""
    async with issuing() as issuer:
        tokens = JwtTokens([Issuer(issuer.url, Web())], ClaimRules(principal_claim="email"))
        result = await bear(OAuthTokens(tokens, Possession()), issuer.sign(**claims))
    assert isinstance(result, Principal if name else Denial)
    assert name is None or (isinstance(result, Principal) and result.name == name)


async def test_other_header_types_algorithms_and_audiences_are_accepted() -> None:
    async with issuing() as issuer:
        tokens = trusting(issuer)
        headers: list[dict[str, str | None]] = [{"typ": None}, {"typ": "JWT"}, {"typ": "application/AT+JWT"}]
        taken = [issuer.sign(header) for header in [*headers, {"kid": None}]]
        taken += [issuer.sign(key=rsa()), issuer.sign({"alg": "PS384"}, key=rsa())]
        for token in [*taken, issuer.sign(aud=["x", "HTTPS://RS.example/mcp/"])]:
            assert isinstance(await bear(tokens, token), Principal)


async def test_edwards_curves_are_accepted_under_either_name() -> None:
    key = OKPKey.generate_key("Ed25519", {"kid": "ed"}, private=True)
    async with issuing() as issuer:
        issuer.keys = [key]
        tokens = trusting(issuer)
        assert isinstance(await bear(tokens, issuer.sign({"alg": "Ed25519"}, key=key)), Principal)
        with pytest.warns(SecurityWarning):
            old = issuer.sign({"alg": "EdDSA"}, key=key)
        assert isinstance(await bear(tokens, old), Principal)


async def test_scopes_are_read_from_scope_or_scp() -> None:
    scopes: list[tuple[dict[str, object], set[str]]] = [
        ({"scope": None}, set()),
        ({"scope": "a  b"}, {"a", "b"}),
        ({"scope": None, "scp": "a b"}, {"a", "b"}),
        ({"scope": None, "scp": ["a", "b"]}, {"a", "b"}),
    ]
    async with issuing() as issuer:
        for claims, found in scopes:
            result = await bear(trusting(issuer), issuer.sign(**claims))
            assert isinstance(result, Principal)
            assert result.scopes == found


async def test_a_client_without_a_subject_differs_from_a_subject_of_the_same_name() -> None:
    async with issuing() as issuer:
        tokens = trusting(issuer)
        client = await bear(tokens, issuer.sign(sub=None, client_id="alice"))
        person = await bear(tokens, issuer.sign(sub="alice"))
    assert isinstance(client, Principal)
    assert isinstance(person, Principal)
    assert client.key != person.key
    assert (client.name, person.name) == ("client:alice", "alice")


async def test_a_subject_with_the_prefix_of_clients_is_denied() -> None:
    async with issuing() as issuer:
        assert isinstance(await bear(trusting(issuer), issuer.sign(sub="client:alice")), Denial)


async def test_the_same_subject_of_two_issuers_is_two_principals() -> None:
    async with issuing() as one, issuing() as other:
        tokens = trusting(one, other)
        result = [await bear(tokens, issuer.sign()) for issuer in (one, other)]
    keys = {who.key for who in result if isinstance(who, Principal)}
    names = {who.name for who in result if isinstance(who, Principal)}
    assert keys == names == {f"{one.url}#alice", f"{other.url}#alice"}


async def test_a_known_token_returns_the_cached_principal() -> None:
    async with issuing() as issuer:
        tokens, token = trusting(issuer), issuer.sign()
        incoming = request(authorization=f"Bearer {token}")
        assert not tokens.knows(incoming)
        result = await tokens.authenticate(incoming)
        assert tokens.knows(incoming)
        assert await tokens.authenticate(incoming) is result


async def test_a_cached_token_is_checked_again_and_ends_when_it_expires() -> None:
    clock = Clock()
    async with issuing() as issuer:
        tokens, token = trusting(issuer, clock=clock), issuer.sign()
        incoming = request(authorization=f"Bearer {token}")
        await tokens.authenticate(incoming)
        clock.now += 301
        assert not tokens.knows(incoming)
        assert isinstance(await tokens.authenticate(incoming), Principal)
        clock.now += 400
        assert isinstance(await tokens.authenticate(incoming), Denial)


async def test_a_cached_token_that_expires_before_its_next_check_is_denied() -> None:
    clock = Clock()
    async with issuing() as issuer:
        tokens, token = trusting(issuer, clock=clock), issuer.sign(exp=int(clock.now) + 100)
        assert isinstance(await bear(tokens, token), Principal)
        clock.now += 161  # clocks may differ by a minute
        assert isinstance(await bear(tokens, token), Denial)


async def test_a_token_cached_for_a_resource_is_denied_for_another() -> None:
    async with issuing() as issuer:
        tokens, token = trusting(issuer), issuer.sign()
        assert isinstance(await bear(tokens, token), Principal)
        other = type(PROTECTED)("https://rs.example/b", METADATA, frozenset(["https://rs.example/b"]), list)
        headers = Headers({"authorization": f"Bearer {token}"})
        assert isinstance(await tokens.authenticate(HttpRequest("POST", "/b", headers, resource=other)), Denial)


async def test_static_tokens_of_the_operator_need_no_issuer() -> None:
    async with issuing() as issuer:
        tokens = trusting(issuer, own_tokens=Own())
        assert await bear(tokens, "own") == Principal("token-own")
        assert await tokens.authenticate(request(x_api_key="own")) == Principal("token-own")
        assert tokens.knows(request(authorization="Bearer own"))
        assert not issuer.site.received


# Places of a token


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


async def test_misplaced_tokens_are_denied_with_a_challenge() -> None:
    async with issuing() as issuer:
        good = issuer.sign()
        for headers, query, status, words in PLACES:
            sent = {name: value.replace("GOOD", good) for name, value in headers.items()}
            result = await trusting(issuer).authenticate(request(query=query.replace(b"GOOD", good.encode()), **sent))
            assert isinstance(result, Denial)
            assert (result.status, words in result.challenge) == (status, True), (headers, query)
            assert good not in result.reason + result.challenge


async def test_two_authorization_headers_are_refused() -> None:
    async with issuing() as issuer:
        headers = Headers({"authorization": f"Bearer {issuer.sign()}"}, frozenset(["authorization"]))
        result = await trusting(issuer).authenticate(HttpRequest("POST", "/mcp", headers, resource=PROTECTED))
    assert isinstance(result, Denial)
    assert result.status == 400


async def test_answers_and_logs_contain_no_part_of_a_token(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with issuing() as issuer:
        tokens = trusting(issuer)
        for token in (issuer.sign(aud="other"), issuer.sign(), issuer.sign()[:-3] + "AAA"):
            result = await bear(tokens, token)
            payload = token.split(".")[1]
            assert payload not in repr(result)
            assert payload not in caplog.text


async def test_the_cache_of_tokens_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    # To sign and check as many tokens as really fit takes seconds.
    monkeypatch.setattr("shared.auth.authenticators.MAX_CACHED", 2)
    async with issuing() as issuer:
        tokens = trusting(issuer)
        sent = [request(authorization=f"Bearer {issuer.sign(jti=str(n))}") for n in range(3)]
        for one in sent:
            await tokens.authenticate(one)
        assert [tokens.knows(one) for one in sent] == [False, True, True]
