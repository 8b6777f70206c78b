"""Requests to a token endpoint, and checks of its answers."""

import math
from typing import Any

import pytest

from shared.auth.metadata import IssuerMetadata
from shared.auth.web import Web
from shared.client.auth.authorization import Authorization
from shared.client.auth.registration import ClientInformation
from shared.client.auth.token_endpoint import TokenEndpoint
from shared.client.auth.tokens import Token
from shared.errors import AuthError
from tests.shared.auth.sites import as_json
from tests.shared.client.auth.world import World


async def obtained(world: World, client: ClientInformation | None = None, **fields: str) -> Token:
    endpoint = TokenEndpoint(Web(), IssuerMetadata(**world.issuer.document), client, lambda: world.now)
    return await endpoint.request_token("authorization_code", {"code": "c0de", **fields}, frozenset())


@pytest.mark.parametrize("lasts", [10**400, math.inf, math.nan, 1e18, -1, True, "soon"], ids=str)
async def test_an_invalid_expires_in_is_ignored(world: World, lasts: Any) -> None:
    world.issuer.token["expires_in"] = lasts
    assert (await obtained(world)).expires is None


async def test_an_expires_in_of_years_is_used(world: World) -> None:
    world.issuer.token["expires_in"] = 5 * 365 * 24 * 3600
    assert (await obtained(world)).expires == world.now + 5 * 365 * 24 * 3600


async def test_a_refresh_token_that_no_form_can_encode_is_dropped(world: World) -> None:
    world.issuer.token["refresh_token"] = "\ud800"
    assert (await obtained(world)).refresh is None


async def test_a_code_or_state_with_a_lone_surrogate_is_refused(world: World) -> None:
    with pytest.raises(AuthError, match="characters that can't be sent"):
        await obtained(world, code="\ud800")
    begun, issuer = Authorization.begin(), IssuerMetadata(**world.issuer.document)
    with pytest.raises(AuthError, match="no usable code"):
        begun.code({"state": begun.state, "code": "\ud800"}, issuer)
    with pytest.raises(AuthError, match="wrong state"):
        begun.code({"state": "\ud800", "code": "c"}, issuer)


async def test_a_client_id_or_secret_with_a_lone_surrogate_is_refused(world: World) -> None:
    for client in (ClientInformation("\ud800"), ClientInformation("x", secret="\ud800")):
        with pytest.raises(AuthError, match="characters that can't be sent"):
            await obtained(world, client)


@pytest.mark.parametrize("echo", ["s3cret/code", "s3cret%2Fcode", "x" * 95 + "s3cret/code"])
@pytest.mark.parametrize("field", ["error", "error_description"])
async def test_a_secret_in_the_error_of_the_issuer_is_not_shown(world: World, field: str, echo: str) -> None:
    world.issuer.answers["/token"] = lambda received: as_json({"error": "invalid_grant", field: echo}, 400)
    with pytest.raises(AuthError, match="the issuer refused to issue a token: ") as caught:
        await obtained(world, code="s3cret/code")
    assert "s3cret" not in str(caught.value)


async def test_the_error_of_the_issuer_may_name_a_scope(world: World) -> None:
    answer = {"error": "invalid_scope", "error_description": "nobody has notes:write"}
    world.issuer.answers["/token"] = lambda received: as_json(answer, 400)
    with pytest.raises(AuthError, match="invalid_scope: nobody has notes:write"):
        await obtained(world, scope="notes:write")
