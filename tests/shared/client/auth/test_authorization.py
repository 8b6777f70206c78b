"""A person logs in: what is sent where, and what is believed."""

import re
from urllib.parse import parse_qsl

import pytest
from authlib.oauth2.rfc7636 import create_s256_code_challenge

from shared.client.auth import AuthorizationCode, ClientInformation, MemoryTokens
from shared.errors import AuthError, LoginRequired
from tests.shared.auth.sites import Said, said
from tests.shared.client.auth.world import REDIRECT, Person, World


async def test_a_login_proves_its_code_and_names_the_resource(world: World) -> None:
    assert await world.get(world.client()) == 200
    (login,), (form,) = world.issuer.logins, world.issuer.forms
    assert create_s256_code_challenge(form["code_verifier"]) == login["code_challenge"]
    assert login["code_challenge_method"] == "S256"
    assert (login["resource"], form["resource"]) == (world.url, world.url)
    assert (login["scope"], form["client_id"]) == ("read", "made-up")


async def test_what_registers_is_a_native_client_that_refreshes(world: World) -> None:
    await world.get(world.client())
    (asked,) = [one for one in world.issuer.site.asked if one.path == "/register"]
    assert b'"application_type":"native"' in asked.body.replace(b": ", b":")
    assert b"refresh_token" in asked.body
    assert REDIRECT.encode() in asked.body


async def test_the_state_has_to_come_back(world: World) -> None:
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
async def test_only_the_issuer_that_was_asked_is_believed(world: World, case: str) -> None:
    advertised, iss, accepted = ISS[case]
    world.issuer.metadata["authorization_response_iss_parameter_supported"] = advertised
    world.issuer.callback["iss"] = iss.replace("own", world.issuer.site.url) if iss else None
    if accepted:
        assert await world.get(world.client()) == 200
    else:
        with pytest.raises(AuthError):
            await world.get(world.client())
        assert not world.issuer.forms


async def test_what_another_issuer_says_is_not_repeated(world: World) -> None:
    world.issuer.callback |= {
        "code": None,
        "error": "access_denied",
        "error_description": "call 555",
        "iss": "https://x",
    }
    with pytest.raises(AuthError, match="a different issuer") as caught:
        await world.get(world.client())
    assert "555" not in str(caught.value)


async def test_what_the_issuer_says_is_one_line(world: World) -> None:
    world.issuer.callback |= {"code": None, "error": "access_denied", "error_description": "no\n\x1b[31mway"}
    with pytest.raises(AuthError, match="access_denied no") as caught:
        await world.get(world.client())
    assert str(caught.value).isprintable()


async def test_an_issuer_without_pkce_is_not_used(world: World) -> None:
    world.issuer.metadata["code_challenge_methods_supported"] = None
    with pytest.raises(AuthError, match="PKCE"):
        await world.get(world.client())
    assert not world.issuer.logins


async def test_without_a_person_somebody_has_to_log_in_first(world: World) -> None:
    with pytest.raises(LoginRequired):
        await world.get(world.client(AuthorizationCode(None)))


async def test_a_client_with_a_document_of_its_own_does_not_register(world: World) -> None:
    world.issuer.metadata["client_id_metadata_document_supported"] = True
    mine = "https://client.example/me.json"
    assert await world.get(world.client(AuthorizationCode(Person(), metadata_url=mine))) == 200
    assert world.issuer.logins[0]["client_id"] == mine
    assert not world.issuer.site.count("/register")


async def test_a_registered_client_is_shown_to_its_issuer_alone(world: World) -> None:
    given = ClientInformation("mine", "a-secret", issuer="https://elsewhere.example")
    with pytest.raises(AuthError, match="no longer names"):
        await world.get(world.client(AuthorizationCode(Person(), given)))
    assert not world.issuer.site.asked


async def test_an_issuer_that_registers_nobody_is_told_of(world: World) -> None:
    world.issuer.metadata["registration_endpoint"] = None
    with pytest.raises(AuthError, match="not support dynamic client registration"):
        await world.get(world.client())


async def test_a_registration_that_is_refused_is_told_of(world: World) -> None:
    world.issuer.answers["/register"] = lambda asked: said({"error": "invalid_redirect_uri"}, 400)
    with pytest.raises(AuthError, match="invalid_redirect_uri"):
        await world.get(world.client())


async def test_a_registration_serves_the_next_login_too(world: World) -> None:
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
async def test_the_issuer_says_how_clients_prove_themselves(world: World, method: str) -> None:
    world.issuer.metadata["token_endpoint_auth_methods_supported"] = [method]
    given = ClientInformation("made:up", "s&/t")
    assert await world.get(world.client(AuthorizationCode(Person(), given))) == 200
    (asked,) = [one for one in world.issuer.site.asked if one.path == "/token"]
    sent = dict(parse_qsl(asked.body.decode())).get("client_secret")
    assert (asked.headers.get("authorization"), sent) == METHODS[method]


async def test_offline_access_is_asked_for_where_the_issuer_knows_it(world: World) -> None:
    world.issuer.metadata["scopes_supported"] = ["read", "offline_access"]
    await world.get(world.client())
    assert world.issuer.logins[0]["scope"] == "offline_access read"


async def test_offline_access_is_not_asked_of_others(world: World) -> None:
    world.challenge = world.challenge.replace('"read"', '"read offline_access"')
    await world.get(world.client())
    assert world.issuer.logins[0]["scope"] == "read"


async def test_the_scopes_of_the_server_are_asked_for_where_it_does_not_say(world: World) -> None:
    world.challenge = "Bearer"
    world.resource["scopes_supported"] = ["a", "b"]
    await world.get(world.client())
    assert world.issuer.logins[0]["scope"] == "a b"


async def test_a_server_of_the_first_version_issues_its_own_tokens(world: World) -> None:
    world.challenge = "Bearer"
    world.issuer.answers["/mcp"] = lambda asked: (
        said({}) if asked.headers.get("authorization", "")[7:] in world.issuer.issued else said({}, 401)
    )
    world.site, mcp = world.issuer.site, world.site
    assert mcp is not world.site
    assert await world.get(world.client()) == 200
    assert "resource" not in world.issuer.logins[0]


async def test_a_server_of_the_first_version_needs_no_metadata(world: World) -> None:
    world.issuer.answers["/.well-known/oauth-authorization-server"] = lambda asked: Said(404)
    await test_a_server_of_the_first_version_issues_its_own_tokens(world)


async def test_no_error_has_a_secret(world: World) -> None:
    def echo(asked: object) -> Said:
        form = world.issuer.site.asked[-1].body.decode()
        code = re.findall("code=([^&]+)", form)[0]
        return said({"error": "invalid_grant", "error_description": f"unknown code {code}"}, 400)

    world.issuer.answers["/token"] = echo
    with pytest.raises(AuthError, match="invalid_grant") as caught:
        await world.get(world.client())
    assert "code-1" not in str(caught.value)
