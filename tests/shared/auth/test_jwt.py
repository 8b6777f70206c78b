"""Signed tokens: each invalid one is denied."""

import base64
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from shared.auth.claims import ClaimRules
from shared.auth.issuers import Issuer
from shared.auth.jose import BadToken
from shared.auth.jwt import JwtTokens
from shared.auth.web import Web
from shared.protocol.http.rules import Denial
from shared.protocol.identity import Principal
from tests.shared.auth.bad_tokens import bad_tokens, compact
from tests.shared.auth.issuing import EC, RESOURCE, Clock, FakeIssuer, bear, issuing, rsa, trusting


async def test_bad_tokens_are_denied() -> None:
    async with issuing() as issuer:
        tokens = trusting(issuer)
        assert isinstance(await bear(tokens, issuer.sign()), Principal)
        result = {name: await bear(tokens, token) for name, token in bad_tokens(issuer).items()}
        paths = {received.path for received in issuer.site.received}
    wrong = {name: one for name, one in result.items() if not isinstance(one, Denial) or one.status not in (400, 401)}
    assert not wrong
    assert paths == {"/.well-known/oauth-authorization-server", "/jwks"}
    assert all(one.challenge for one in result.values() if isinstance(one, Denial))


async def test_tokens_with_wrong_claims_cause_no_request_to_the_issuer() -> None:
    async with issuing() as issuer:
        tokens = trusting(issuer)
        for token in (issuer.sign(aud="other"), issuer.sign(exp=1), issuer.sign(iss="https://evil.example"), "a.b.c"):
            assert isinstance(await bear(tokens, token), Denial)
        assert not issuer.site.received


@pytest.mark.parametrize(("late", "gets_in"), [(59, True), (61, False)])
async def test_the_clock_of_an_issuer_may_differ_by_a_minute(late: int, gets_in: bool) -> None:
    async with issuing() as issuer:
        clock = Clock()
        token = issuer.sign(exp=int(clock.now) - late)
        assert isinstance(await bear(trusting(issuer, clock=clock), token), Principal) is gets_in
        token = issuer.sign(nbf=int(clock.now) + late)
        assert isinstance(await bear(trusting(issuer, clock=clock), token), Principal) is gets_in


async def test_an_algorithm_that_the_operator_does_not_allow_is_refused() -> None:
    async with issuing() as issuer:
        only = JwtTokens([Issuer(issuer.url, Web())], ClaimRules(), frozenset(["ES256"]))
        assert await only.check(issuer.sign(), [RESOURCE], time.time())
        with pytest.raises(BadToken, match="algorithm"):
            await only.check(issuer.sign(key=rsa()), [RESOURCE], time.time())


# Forged tokens: random changes to a valid token, at least one of which matters

_ANY = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=20),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
_NAMES = some.sampled_from("iss aud exp nbf iat sub client_id azp scope scp cnf typ alg kid crit jwk jku x5c".split())  # noqa: SIM905
_ALGORITHMS = some.sampled_from(["none", "HS256", "RS256", "ES256", "EdDSA", "PS256", "es256", ""]) | _ANY


class StillIssuer(Issuer):
    """An issuer with known keys, which needs no requests."""

    async def keys(self, kid: str | None, algorithm: str) -> list[Any]:
        return [key for key in (EC, rsa()) if kid in (None, key.kid)]


ISSUER = FakeIssuer(keys=[])  # never requested, and an RSA key is slow to generate
ISSUER.site.port = 9
STILL = JwtTokens([StillIssuer(ISSUER.url, Web())], ClaimRules())


GOOD = ISSUER.sign(exp=int(time.time()) + 86_400)  # longer than a run of all tests


def gets_in(token: str) -> bool:
    checking = STILL.check(token, [RESOURCE], time.time())
    try:
        checking.send(None)  # without requests, it never waits
    except BadToken:
        return False
    except StopIteration:
        return True
    raise AssertionError("it waits")


def _forge(data: some.DataObject) -> str:
    """A token without a valid signature of the issuer."""
    header = {"alg": data.draw(_ALGORITHMS), "kid": data.draw(some.sampled_from(["ec", "rsa", "x", None]))}
    header |= data.draw(some.dictionaries(_NAMES, _ANY, max_size=3))
    claims: dict[str, Any] = {"iss": ISSUER.url, "aud": RESOURCE, "sub": "root", "exp": int(time.time()) + 600}
    claims |= data.draw(some.dictionaries(_NAMES, _ANY, max_size=2))
    signature = data.draw(some.binary(max_size=80) | some.binary(min_size=256, max_size=256))
    return compact(header, claims, signature)


def _altered(data: some.DataObject) -> str:
    """A valid token with one changed byte in its signed part or its signature."""
    parts = [bytearray(base64.urlsafe_b64decode(part + "==")) for part in GOOD.split(".")]
    part = parts[data.draw(some.integers(0, 2))]
    place = data.draw(some.integers(0, len(part) - 1))
    part[place] ^= data.draw(some.integers(1, 255))
    return ".".join(base64.urlsafe_b64encode(bytes(one)).rstrip(b"=").decode() for one in parts)


def _forged(data: some.DataObject) -> None:
    forge = data.draw(some.sampled_from([_forge, _altered]))
    assert not gets_in(forge(data))


def test_a_valid_token_is_accepted_by_the_check_for_forged_tokens() -> None:
    assert gets_in(GOOD)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(some.data())
def test_forged_tokens_are_refused(data: some.DataObject) -> None:
    _forged(data)


@pytest.mark.slow
@settings(max_examples=1_500, deadline=None, suppress_health_check=list(HealthCheck))
@given(some.data())
def test_thousands_of_forged_tokens_are_refused(data: some.DataObject) -> None:
    _forged(data)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(some.text(max_size=200) | some.binary(max_size=200).map(lambda data: base64.urlsafe_b64encode(data).decode()))
def test_any_text_is_refused_as_a_bad_token(text: str) -> None:
    assert not gets_in(text)
