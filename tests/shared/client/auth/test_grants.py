"""Grants without a person (client credentials, identity assertions, workload identities), and DPoP-bound tokens."""

from base64 import b64decode

import pytest
from joserfc.jwk import ECKey, OKPKey

from shared.auth.dpop import check_proof
from shared.client.auth import ClientCredentials, ClientInformation, EnterpriseManaged, MemoryTokens, WorkloadIdentity
from shared.errors import AuthError
from tests.shared.auth.issuing import rsa
from tests.shared.auth.sites import Answer, Received, as_json
from tests.shared.client.auth.world import World, claims

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"


async def test_client_credentials_authenticate_with_a_secret(world: World) -> None:
    assert await world.get(world.client(ClientCredentials(ClientInformation("me", "secret")))) == 200
    (received,) = [one for one in world.issuer.site.received if one.path == "/token"]
    assert b64decode(received.headers["authorization"].removeprefix("Basic ")) == b"me:secret"
    (form,) = world.issuer.forms
    assert form == {"grant_type": "client_credentials", "resource": world.url, "scope": "read"}


@pytest.mark.parametrize("algorithm", ["ES256", "RS256", "PS256", "Ed25519"])
async def test_client_credentials_authenticate_with_a_signed_assertion(world: World, algorithm: str) -> None:
    keys = {"ES256": lambda: ECKey.generate_key("P-256"), "Ed25519": lambda: OKPKey.generate_key("Ed25519")}
    key = keys.get(algorithm, rsa)().as_pem(private=True).decode()
    client = ClientInformation("me", private_key=key, algorithm=algorithm)
    assert await world.get(world.client(ClientCredentials(client))) == 200
    (form,) = world.issuer.forms
    kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    assert (form["client_id"], form["client_assertion_type"]) == ("me", kind)
    assertion = claims(form["client_assertion"])
    assert (assertion["iss"], assertion["sub"], assertion["aud"]) == ("me", "me", world.issuer.site.url)
    assert assertion["exp"] == world.now + 60


async def test_an_invalid_private_key_is_an_error_that_does_not_show_it(world: World) -> None:
    with pytest.raises(AuthError, match="private key") as caught:
        await world.get(world.client(ClientCredentials(ClientInformation("me", private_key="no key"))))
    assert "no key" not in str(caught.value)


@pytest.mark.parametrize(("bound", "reason"), [(True, "not registered with this issuer"), (False, "HTTP 404")])
async def test_the_origin_of_a_server_without_metadata_gets_no_secret_of_an_issuer(
    world: World, bound: bool, reason: str
) -> None:
    world.resource = None
    client = ClientInformation("me", "secret", issuer=world.issuer.site.url if bound else None)
    with pytest.raises(AuthError, match=reason):
        await world.get(world.client(ClientCredentials(client)))
    assert world.site.count("/token") == (not bound)


async def test_an_expired_token_of_client_credentials_is_replaced(world: World) -> None:
    client = world.client(ClientCredentials(ClientInformation("me", "secret")))
    await world.get(client)
    world.now += 3_600
    assert await world.get(client) == 200
    assert len(world.issuer.forms) == 2


def _managed(world: World) -> EnterpriseManaged:
    at_provider = ClientInformation("at-provider", issuer=world.other.site.url)
    place = f"{world.other.site.url}/token"
    return EnterpriseManaged(ClientInformation("me", "secret"), "id-token", at_provider, place)


async def test_an_identity_assertion_is_exchanged_for_a_token(world: World) -> None:
    kind = "urn:ietf:params:oauth:token-type:"
    world.other.token = {"access_token": "vouched", "issued_token_type": f"{kind}id-jag", "token_type": "N_A"}
    assert await world.get(world.client(_managed(world))) == 200
    (exchange,), (form,) = world.other.forms, world.issuer.forms
    assert (exchange["subject_token"], exchange["subject_token_type"]) == ("id-token", f"{kind}id_token")
    assert (exchange["audience"], exchange["resource"]) == (world.issuer.site.url, world.url)
    assert (form["grant_type"], form["assertion"]) == (JWT_BEARER, "vouched")


async def test_a_token_of_a_wrong_type_is_not_sent_as_an_identity_assertion(world: World) -> None:
    with pytest.raises(AuthError, match="no identity assertion"):
        await world.get(world.client(_managed(world)))
    assert not world.issuer.forms


async def test_a_refused_workload_identity_is_not_sent_again(world: World) -> None:
    world.issuer.answers["/token"] = lambda received: as_json({"error": "invalid_grant"}, 400)
    client = world.client(WorkloadIdentity("signed"))
    for _ in range(2):
        with pytest.raises(AuthError, match="invalid_grant"):
            await world.get(client)
    assert world.issuer.site.count("/token") == 1


async def test_each_token_request_sends_a_new_workload_identity(world: World) -> None:
    shown = iter(["first", "second"])

    async def identity() -> str:
        return next(shown)

    client = world.client(WorkloadIdentity(identity))
    await world.get(client)
    world.now += 3_600
    await world.get(client)
    assert [form["assertion"] for form in world.issuer.forms] == ["first", "second"]
    assert {form["grant_type"] for form in world.issuer.forms} == {JWT_BEARER}


def demand_nonces(world: World) -> None:
    """Makes the issuer and the server refuse proofs without their nonce."""

    def nonce(received: Received, expected: str) -> bool:
        return claims(received.headers["dpop"]).get("nonce") == expected

    def at_issuer(received: Received) -> Answer | None:
        return None if nonce(received, "one") else as_json({"error": "use_dpop_nonce"}, 400, dpop_nonce="one")

    def at_server(received: Received, token: str) -> Answer | None:
        challenge = 'DPoP error="use_dpop_nonce"'
        return None if nonce(received, "two") else as_json({}, 401, www_authenticate=challenge, dpop_nonce="two")

    world.issuer.answers["/token"], world.judge = at_issuer, at_server


def bind_tokens(world: World) -> None:
    """Makes the issuer bind its tokens to the client's key, and the server require it."""
    world.issuer.token["token_type"] = "DPoP"
    world.challenge = world.challenge.replace("Bearer", "DPoP")


async def test_each_request_with_a_bound_token_has_its_own_dpop_proof(world: World) -> None:
    bind_tokens(world)
    client = world.client()
    await world.get(client)
    await world.get(client)
    sent = [one.headers for one in world.site.received if "dpop" in one.headers]
    assert {headers["authorization"] for headers in sent} == {f"DPoP {world.issuer.issued[0]}"}
    token = world.issuer.issued[0]
    proofs = [check_proof(headers["dpop"], "GET", world.url, world.now, token=token) for headers in sent]
    assert len({proof.id for proof in proofs}) == 2
    assert len({proof.thumbprint for proof in proofs}) == 1


async def test_dpop_nonces_of_the_issuer_and_the_server_are_remembered(world: World) -> None:
    bind_tokens(world)
    demand_nonces(world)
    client = world.client()
    assert await world.get(client) == 200
    before = len(world.site.received)
    assert await world.get(client) == 200
    assert len(world.site.received) == before + 1
    assert world.issuer.site.count("/token") == 2


async def test_a_dpop_nonce_of_a_successful_answer_is_used_next(world: World) -> None:
    bind_tokens(world)
    nonces, sent = iter("abc"), []

    def judge(received: Received, token: str) -> Answer:
        sent.append(claims(received.headers["dpop"]).get("nonce"))
        return as_json({}, 200, dpop_nonce=next(nonces))

    world.judge = judge
    client = world.client()
    for _ in range(3):
        assert await world.get(client) == 200
    assert sent == [None, "a", "b"]


async def test_the_dpop_key_is_stored_with_its_token(world: World) -> None:
    bind_tokens(world)
    tokens = MemoryTokens()
    await world.get(world.client(tokens=tokens))
    await world.get(world.client(tokens=tokens))
    proofs = [one.headers["dpop"] for one in world.site.received if "dpop" in one.headers]
    token = world.issuer.issued[0]
    assert len({check_proof(one, "GET", world.url, world.now, token=token).thumbprint for one in proofs}) == 1
    assert len(world.issuer.logins) == 1


async def test_an_unbound_token_is_refused_if_proofs_are_required(world: World) -> None:
    bind_tokens(world)
    world.issuer.token["token_type"] = "Bearer"
    with pytest.raises(AuthError, match="not bound"):
        await world.get(world.client())
    assert not [one for one in world.site.received if "authorization" in one.headers]
