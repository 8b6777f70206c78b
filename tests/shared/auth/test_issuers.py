"""Issuers that misbehave, over sockets: their tokens are denied, and tokens of other issuers are accepted."""

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest
from joserfc.errors import SecurityWarning
from joserfc.jwk import ECKey, RSAKey

from shared.auth.addresses import ForbiddenAddress
from shared.auth.issuers import Issuer
from shared.auth.web import MAX_ANSWER_BYTES, Web
from shared.protocol.http.rules import Denial
from shared.protocol.identity import Principal
from tests.clock import forward
from tests.shared.auth.issuing import EC, Clock, bear, issuing, rsa, trusting
from tests.shared.auth.sites import Answer, Received, Silence, as_json

NEW = ECKey.generate_key("P-256", {"kid": "new"}, private=True)
METADATA = "/.well-known/oauth-authorization-server"


def status(result: Principal | Denial) -> int:
    return result.status if isinstance(result, Denial) else 200


async def drop(received: Received) -> Answer:
    raise ConnectionResetError


def gives(answer: Answer) -> Callable[[Received], Awaitable[Answer]]:
    async def given(received: Received) -> Answer:
        return answer

    return given


MANY = as_json({"keys": [EC.as_dict(private=False) | {"kid": str(n)} for n in range(101)]})
Fault = tuple[str, Callable[[Received], Awaitable[Answer]]]
FAULTS: dict[str, Fault] = {
    "gone": ("/jwks", drop),
    "huge": ("/jwks", gives(Answer(200, b'{"keys": [], "x": "' + b"x" * MAX_ANSWER_BYTES + b'"}'))),
    "too many keys": ("/jwks", gives(MANY)),
    "no JSON": ("/jwks", gives(Answer(200, b"<html>"))),
    "no keys": ("/jwks", gives(as_json({}))),
    "no list of keys": ("/jwks", gives(as_json({"keys": {"kid": "ec"}}))),
    "broken": ("/jwks", gives(as_json({}, 500))),
    "redirects": ("/jwks", gives(Answer(302, b"", {"location": "/elsewhere"}))),
    "metadata broken": (METADATA, gives(as_json({}, 500))),
    "metadata redirects": (METADATA, gives(Answer(307, b"", {"location": "/elsewhere"}))),
    "metadata of another": (METADATA, gives(as_json({"issuer": "https://evil.example", "jwks_uri": "/jwks"}))),
    "metadata is a list": (METADATA, gives(as_json([]))),
    "without a place of keys": (METADATA, gives(as_json({"issuer": ""}))),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_tokens_of_a_faulty_issuer_get_503(fault: str) -> None:
    path, answer = FAULTS[fault]
    async with issuing() as bad, issuing() as good:
        bad.answers[path] = answer
        tokens = trusting(bad, good)
        result = await bear(tokens, bad.sign())
        assert isinstance(result, Denial)
        assert (result.status, result.headers, result.challenge) == (503, (("retry-after", "30"),), "")
        assert isinstance(await bear(tokens, good.sign()), Principal)
        assert bad.site.count("/elsewhere") == 0


async def test_an_issuer_that_names_itself_with_a_slash_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with issuing() as issuer:
        named = f"{issuer.site.url}/"
        issuer.answers[METADATA] = gives(as_json({"issuer": named, "jwks_uri": f"{named}jwks"}))
        assert status(await bear(trusting(issuer), issuer.sign())) == 503
    assert f"its metadata names it {named}: set exactly that URL" in caplog.text


async def test_tokens_of_a_silent_issuer_get_503() -> None:
    async with issuing() as slow, issuing() as good:
        slow.answers["/jwks"] = silence = Silence()
        tokens = trusting(slow, good, patience=10)
        asking = asyncio.ensure_future(bear(tokens, slow.sign()))
        await silence.received.wait()
        forward(10)
        assert status(await asking) == 503
        assert isinstance(await bear(tokens, good.sign()), Principal)


async def test_a_failed_issuer_is_not_requested_for_each_token() -> None:
    clock = Clock()
    async with issuing() as issuer:
        issuer.put("/jwks", as_json({}, 500))
        tokens = trusting(issuer, clock=clock)
        result = await asyncio.gather(*(bear(tokens, issuer.sign(jti=str(n))) for n in range(50)))
        assert {status(one) for one in result} == {503}
        assert issuer.site.count("/jwks") == 1
        del issuer.answers["/jwks"]
        clock.now += 6
        assert isinstance(await bear(tokens, issuer.sign()), Principal)


async def test_an_outage_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    async with issuing() as issuer:
        issuer.put("/jwks", as_json({}, 500))
        tokens = trusting(issuer, clock=clock)
        for number in range(3):
            await bear(tokens, issuer.sign(jti=str(number)))
            clock.now += 6
        assert issuer.site.count("/jwks") == 3
    assert len(caplog.records) == 1


async def test_keys_that_are_not_public_signing_keys_are_not_used() -> None:
    odd = [EC.as_dict(private=True), {"kty": "oct", "k": "c2VjcmV0", "kid": "ec"}, {"kty": "EC"}, 7, None]
    for keys in ([], [*odd, EC.as_dict(private=False) | {"use": "enc"}]):
        async with issuing() as issuer:
            issuer.put("/jwks", as_json({"keys": keys}))
            assert status(await bear(trusting(issuer), issuer.sign())) == 401


async def test_a_weak_key_is_not_used() -> None:
    with pytest.warns(SecurityWarning):
        weak = RSAKey.generate_key(1024, {"kid": "weak"}, private=True)
    async with issuing() as issuer:
        issuer.keys = [weak]
        assert status(await bear(trusting(issuer), issuer.sign(key=weak))) == 401


async def test_a_key_is_used_only_with_its_own_algorithm() -> None:
    async with issuing() as issuer:
        issuer.put("/jwks", as_json({"keys": [rsa().as_dict(private=False, alg="RS256")]}))
        tokens = trusting(issuer)
        assert status(await bear(tokens, issuer.sign({"alg": "PS256"}, key=rsa()))) == 401
        assert status(await bear(tokens, issuer.sign(key=rsa()))) == 200


async def test_a_new_key_is_fetched_when_a_token_names_it() -> None:
    clock = Clock()
    async with issuing() as issuer:
        tokens = trusting(issuer, clock=clock)
        assert status(await bear(tokens, issuer.sign())) == 200
        issuer.keys = [NEW]
        clock.now += 31
        assert status(await bear(tokens, issuer.sign(key=NEW))) == 200
        assert status(await bear(tokens, issuer.sign(jti="again"))) == 401


async def test_many_unknown_keys_cause_only_one_fetch() -> None:
    clock = Clock()
    async with issuing() as issuer:
        tokens = trusting(issuer, clock=clock)
        assert status(await bear(tokens, issuer.sign())) == 200
        clock.now += 31
        forged = [issuer.sign({"kid": f"unknown {n}"}) for n in range(100)]
        result = await asyncio.gather(*(bear(tokens, token) for token in forged))
        assert {status(one) for one in result} <= {401, 503}
        again = [await bear(tokens, token) for token in forged]
        assert {status(one) for one in again} == {401}
        assert issuer.site.count("/jwks") == 2
        assert status(await bear(tokens, issuer.sign(jti="another"))) == 200


async def test_old_keys_are_used_for_a_limited_time_while_their_issuer_is_down() -> None:
    clock = Clock()
    async with issuing() as issuer:
        tokens = trusting(issuer, clock=clock)
        assert status(await bear(tokens, issuer.sign())) == 200
        issuer.put("/jwks", as_json({}, 500))
        token = issuer.sign(exp=int(clock.now) + 10**6)
        clock.now += 3_600
        assert status(await bear(tokens, token)) == 200
        clock.now += 24 * 3_600
        assert status(await bear(tokens, token)) == 503


async def test_a_withdrawn_key_is_valid_until_the_keys_are_stale() -> None:
    clock = Clock()
    async with issuing() as issuer:
        keys = json.dumps({"keys": [EC.as_dict(private=False)]}).encode()
        issuer.put("/jwks", Answer(200, keys, {"cache-control": "public, max-age=120"}))
        tokens = trusting(issuer, clock=clock)
        assert status(await bear(tokens, issuer.sign())) == 200
        issuer.put("/jwks", as_json({"keys": [NEW.as_dict(private=False)]}))
        clock.now += 119
        assert status(await bear(tokens, issuer.sign(jti="1"))) == 200
        clock.now += 2
        assert status(await bear(tokens, issuer.sign(jti="2"))) == 401


async def test_keys_are_fetched_again_30_seconds_after_a_failure() -> None:
    clock = Clock()
    async with issuing() as issuer:
        keys = json.dumps({"keys": [EC.as_dict(private=False)]}).encode()
        issuer.put("/jwks", Answer(200, keys, {"cache-control": "max-age=120"}))
        tokens = trusting(issuer, clock=clock)
        assert status(await bear(tokens, issuer.sign())) == 200
        issuer.put("/jwks", as_json({}, 500))
        clock.now += 121
        assert status(await bear(tokens, issuer.sign(jti="1"))) == 200
        issuer.put("/jwks", as_json({"keys": [NEW.as_dict(private=False)]}))
        clock.now += 31
        assert status(await bear(tokens, issuer.sign(jti="2"))) == 401


async def test_old_keys_are_used_while_new_ones_are_fetched() -> None:
    clock = Clock()
    async with issuing() as issuer:
        tokens = trusting(issuer, clock=clock)
        assert status(await bear(tokens, issuer.sign())) == 200
        clock.now += 601
        issuer.answers["/jwks"] = silence = Silence()
        fetching = asyncio.ensure_future(bear(tokens, issuer.sign(exp=int(clock.now) + 60, jti="1")))
        await silence.received.wait()
        async with asyncio.timeout(30):
            assert status(await bear(tokens, issuer.sign(exp=int(clock.now) + 60, jti="2"))) == 200
        assert not fetching.done()
        fetching.cancel()


async def test_keys_at_a_new_url_are_found() -> None:
    clock = Clock()
    async with issuing() as issuer:
        tokens = trusting(issuer, clock=clock)
        assert status(await bear(tokens, issuer.sign())) == 200
        issuer.put("/elsewhere", as_json({"keys": [NEW.as_dict(private=False)]}))
        issuer.put(METADATA, as_json({"issuer": issuer.url, "jwks_uri": f"{issuer.url}/elsewhere"}))
        issuer.put("/jwks", as_json({}, 404))
        statuses = []
        for number in range(2):
            clock.now += 631
            token = issuer.sign(key=NEW, exp=int(clock.now) + 60, jti=f"{number}")
            statuses.append(status(await bear(tokens, token)))
        assert statuses == [401, 200]


async def test_keys_at_a_more_private_address_than_their_issuer_are_not_fetched() -> None:
    async def public(host: str, port: int) -> list[str]:
        return ["127.0.0.1"] if host == "localhost" else ["10.0.0.1"]

    async with issuing() as issuer:
        issuer.put(METADATA, as_json(issuer.document(jwks_uri="http://169.254.169.254/jwks")))
        assert status(await bear(trusting(issuer), issuer.sign())) == 503
        issuer.put(METADATA, as_json(issuer.document(jwks_uri="https://169.254.169.254/jwks")))
        with pytest.raises(ForbiddenAddress):
            await Issuer(issuer.url, Web(resolve=public)).keys("ec", "ES256")


async def test_keys_of_an_issuer_do_not_verify_tokens_of_another() -> None:
    async with issuing() as one, issuing() as other:
        one.keys, other.keys = [EC], [NEW]
        tokens = trusting(one, other)
        assert status(await bear(tokens, one.sign())) == 200
        assert status(await bear(tokens, one.sign(iss=other.url))) == 401
        assert status(await bear(tokens, one.sign(key=NEW))) == 401


async def test_openid_metadata_is_used_without_oauth_metadata() -> None:
    async with issuing() as issuer:
        issuer.put(METADATA, Answer(404))
        issuer.put("/.well-known/openid-configuration", as_json(issuer.document()))
        assert status(await bear(trusting(issuer), issuer.sign())) == 200


def test_an_invalid_issuer_url_is_refused() -> None:
    for url in ("http://as.example", "https://as.example?x=1", "https://as.example#x", "as.example"):
        with pytest.raises(ForbiddenAddress):
            Issuer(url, Web())
