"""Logins with an authorization code: requests to the issuer, and checks of its answers."""

import re
from urllib.parse import parse_qsl

import pytest
from authlib.oauth2.rfc7636 import create_s256_code_challenge

from shared.client.auth import AuthorizationCode, ClientInformation, MemoryTokens
from shared.errors import AuthError, LoginRequired
from tests.shared.auth.sites import Answer, as_json
from tests.shared.client.auth.world import REDIRECT, Person, World


async def test_a_login_sends_a_pkce_challenge_and_the_resource(world: World) -> None:
    assert await world.get(world.client()) == 200
    (login,), (form,) = world.issuer.logins, world.issuer.forms
    assert create_s256_code_challenge(form["code_verifier"]) == login["code_challenge"]
    assert login["code_challenge_method"] == "S256"
    assert (login["resource"], form["resource"]) == (world.url, world.url)
    assert (login["scope"], form["client_id"]) == ("read", "made-up")


async def test_registration_declares_a_native_client_with_refresh_tokens(world: World) -> None:
    await world.get(world.client())
    (received,) = [one for one in world.issuer.site.received if one.path == "/register"]
    assert b'"application_type":"native"' in received.body.replace(b": ", b":")
    assert b"refresh_token" in received.body
    assert REDIRECT.encode() in received.body


async def test_a_callback_with_a_wrong_state_is_refused(world: World) -> None:
    world.issuer.callback["state"] = "another"
    with pytest.raises(AuthError, match="wrong state"):
        await world.get(world.client())
    assert not world.issuer.forms


ISS = {
    "advertised and right": (True, "own", True),
    "advertised and missing": (True, None, False),
    "advertised and another's": (True, "https://other.example", False),
    "not advertised and missing": (False, None, True),
    "not advertised and right": (False, "own", True),
    "not advertised and another's": (False, "https://other.example", False),
    "right but for a slash": (True, "own/", False),
}


@pytest.mark.parametrize("case", ISS)
async def test_a_callback_is_accepted_only_with_the_iss_of_its_issuer(world: World, case: str) -> None:
    advertised, iss, accepted = ISS[case]
    world.issuer.metadata["authorization_response_iss_parameter_supported"] = advertised
    world.issuer.callback["iss"] = iss.replace("own", world.issuer.site.url) if iss else None
    if accepted:
        assert await world.get(world.client()) == 200
    else:
        with pytest.raises(AuthError):
            await world.get(world.client())
        assert not world.issuer.forms


async def test_an_error_of_a_different_issuer_is_not_quoted(world: World) -> None:
    world.issuer.callback |= {
        "code": None,
        "error": "access_denied",
        "error_description": "call 555",
        "iss": "https://x",
    }
    with pytest.raises(AuthError, match="a different issuer") as caught:
        await world.get(world.client())
    assert "555" not in str(caught.value)


async def test_an_error_of_the_issuer_is_quoted_on_one_printable_line(world: World) -> None:
    world.issuer.callback |= {"code": None, "error": "access_denied", "error_description": "no\n\x1b[31mway"}
    with pytest.raises(AuthError, match="access_denied no") as caught:
        await world.get(world.client())
    assert str(caught.value).isprintable()


async def test_an_issuer_without_pkce_is_refused(world: World) -> None:
    world.issuer.metadata["code_challenge_methods_supported"] = None
    with pytest.raises(AuthError, match="PKCE"):
        await world.get(world.client())
    assert not world.issuer.logins


async def test_a_grant_without_a_person_raises_login_required(world: World) -> None:
    with pytest.raises(LoginRequired):
        await world.get(world.client(AuthorizationCode(None)))


async def test_a_client_id_metadata_document_replaces_registration(world: World) -> None:
    world.issuer.metadata["client_id_metadata_document_supported"] = True
    mine = "https://client.example/me.json"
    assert await world.get(world.client(AuthorizationCode(Person(), metadata_url=mine))) == 200
    assert world.issuer.logins[0]["client_id"] == mine
    assert not world.issuer.site.count("/register")


async def test_client_credentials_are_sent_only_to_their_own_issuer(world: World) -> None:
    given = ClientInformation("mine", "a-secret", issuer="https://elsewhere.example")
    with pytest.raises(AuthError, match="no longer names"):
        await world.get(world.client(AuthorizationCode(Person(), given)))
    assert not world.issuer.site.received


async def test_a_server_whose_metadata_is_unavailable_is_an_error(world: World) -> None:
    world.challenge = f'Bearer resource_metadata="{world.issuer.site.url}/down"'
    world.issuer.answers["/down"] = lambda received: Answer(503)
    with pytest.raises(AuthError, match="request for the server's metadata returned HTTP 503: try again later"):
        await world.get(world.client())


async def test_an_issuer_without_dynamic_registration_is_an_error(world: World) -> None:
    world.issuer.metadata["registration_endpoint"] = None
    with pytest.raises(AuthError, match="not support dynamic client registration"):
        await world.get(world.client())


async def test_a_refused_registration_is_an_error_with_its_reason(world: World) -> None:
    world.issuer.answers["/register"] = lambda received: as_json({"error": "invalid_redirect_uri"}, 400)
    with pytest.raises(AuthError, match="invalid_redirect_uri"):
        await world.get(world.client())


async def test_the_next_login_reuses_the_registration(world: World) -> None:
    tokens = MemoryTokens()
    await world.get(world.client(tokens=tokens))
    world.issuer.issued.clear()
    await world.get(world.client(tokens=tokens))
    assert (len(world.issuer.logins), world.issuer.site.count("/register")) == (2, 1)


METHODS = {
    "client_secret_basic": ("Basic bWFkZSUzQXVwOnMlMjYlMkZ0", None),
    "client_secret_post": (None, "s&/t"),
    "none": (None, None),
}


@pytest.mark.parametrize("method", METHODS)
async def test_a_client_authenticates_by_the_method_that_the_issuer_supports(world: World, method: str) -> None:
    world.issuer.metadata["token_endpoint_auth_methods_supported"] = [method]
    given = ClientInformation("made:up", "s&/t")
    assert await world.get(world.client(AuthorizationCode(Person(), given))) == 200
    (received,) = [one for one in world.issuer.site.received if one.path == "/token"]
    sent = dict(parse_qsl(received.body.decode())).get("client_secret")
    assert (received.headers.get("authorization"), sent) == METHODS[method]


async def test_offline_access_is_requested_if_the_issuer_supports_it(world: World) -> None:
    world.issuer.metadata["scopes_supported"] = ["read", "offline_access"]
    await world.get(world.client())
    assert world.issuer.logins[0]["scope"] == "offline_access read"


async def test_offline_access_is_not_requested_if_the_issuer_lacks_it(world: World) -> None:
    world.challenge = world.challenge.replace('"read"', '"read offline_access"')
    await world.get(world.client())
    assert world.issuer.logins[0]["scope"] == "read"


async def test_a_challenge_without_scope_requests_the_scopes_of_the_metadata(world: World) -> None:
    world.challenge = "Bearer"
    world.resource["scopes_supported"] = ["a", "b"]
    await world.get(world.client())
    assert world.issuer.logins[0]["scope"] == "a b"


async def test_a_server_of_2025_03_26_issues_its_own_tokens(world: World) -> None:
    world.challenge = "Bearer"
    world.issuer.answers["/mcp"] = lambda received: (
        as_json({}) if received.headers.get("authorization", "")[7:] in world.issuer.issued else as_json({}, 401)
    )
    world.site, mcp = world.issuer.site, world.site
    assert mcp is not world.site
    assert await world.get(world.client()) == 200
    assert "resource" not in world.issuer.logins[0]


async def test_a_server_of_2025_03_26_needs_no_metadata(world: World) -> None:
    world.issuer.answers["/.well-known/oauth-authorization-server"] = lambda received: Answer(404)
    await test_a_server_of_2025_03_26_issues_its_own_tokens(world)


async def test_an_error_of_the_token_endpoint_shows_no_secret(world: World) -> None:
    def echo(received: object) -> Answer:
        form = world.issuer.site.received[-1].body.decode()
        code = re.findall("code=([^&]+)", form)[0]
        return as_json({"error": "invalid_grant", "error_description": f"unknown code {code}"}, 400)

    world.issuer.answers["/token"] = echo
    with pytest.raises(AuthError, match="invalid_grant") as caught:
        await world.get(world.client())
    assert "code-1" not in str(caught.value)
