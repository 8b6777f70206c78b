"""Issuers and servers that fail, lie or redirect: each gives an error of one line, and gets no token."""

from collections.abc import Callable, Sequence

import pytest

from shared.auth.web import Web
from shared.client.auth import AuthorizationCode, MemoryTokens, OAuth
from shared.client.auth.stored_login import read_login
from shared.client.auth.token_endpoint import TokenEndpoint
from shared.errors import AuthError
from tests.shared.auth.sites import Answer, Naming, as_json
from tests.shared.client.auth.test_grants import bind_tokens, demand_nonces
from tests.shared.client.auth.world import Person, World

METADATA = "/.well-known/oauth-authorization-server"


def elsewhere(world: World, path: str, status: int) -> Answer:
    return Answer(status, b"", {"location": f"{world.other.site.url}{path}"})


MISBEHAVIOUR: dict[str, Callable[[World], object]] = {
    # Metadata of the server
    "its issuer is down": lambda world: world.resource.update(authorization_servers=["http://127.0.0.1:1"]),
    "has no issuer": lambda world: world.resource.update(authorization_servers=[]),
    "has half an address": lambda world: world.resource.update(authorization_servers=["https://["]),
    "has a name that is none": lambda world: world.resource.update(authorization_servers=["https://xn--a.-/"]),
    "moves the cursor": lambda world: world.resource.update(authorization_servers=["https://as.example/\x01"]),
    "belongs to another resource": lambda world: world.resource.update(resource="https://evil.example/mcp"),
    "is a resource that is no URL": lambda world: world.resource.update(resource="https://["),
    "is described nowhere": lambda world: setattr(world, "challenge", 'Bearer resource_metadata="::::"'),
    "wants half a letter": lambda world: (
        world.resource.update(scopes_supported=["\ud800"]),
        setattr(world, "challenge", "Bearer"),
    ),
    # Metadata of the issuer
    "redirects": lambda world: world.issuer.answers.update({METADATA: lambda _: elsewhere(world, METADATA, 302)}),
    "lies": lambda world: world.issuer.metadata.update(issuer=world.other.site.url),
    "talks nonsense": lambda world: world.issuer.answers.update({METADATA: lambda _: Answer(200, b"[" * 100_000)}),
    "never ends": lambda world: world.issuer.answers.update({METADATA: lambda _: Answer(200, b" " * 600_000)}),
    "names no endpoint": lambda world: world.issuer.metadata.update(token_endpoint=None),
    "has tokens at half an address": lambda world: world.issuer.metadata.update(token_endpoint="https://["),
    "names a page of another kind": lambda world: world.issuer.metadata.update(
        authorization_endpoint="javascript:alert(1)"
    ),
    "names a page without https": lambda world: world.issuer.metadata.update(
        authorization_endpoint="http://issuer.example/authorize"
    ),
    # Registrations and tokens of the issuer
    "tokens elsewhere": lambda world: world.issuer.answers.update(
        {"/token": lambda _: elsewhere(world, "/token", 307)}
    ),
    "issues nothing": lambda world: world.issuer.answers.update({"/token": lambda _: as_json({})}),
    "issues for another scheme": lambda world: world.issuer.token.update(token_type="mac"),
    "issues what no header takes": lambda world: world.issuer.token.update(access_token="a\r\nx-evil: 1"),
    "registers nobody": lambda world: world.issuer.registration.clear(),
    "registers half a letter": lambda world: world.issuer.registration.update(client_id="\ud800"),
    "registers a secret of half a letter": lambda world: world.issuer.registration.update(client_secret="\ud800"),
}


@pytest.mark.parametrize("misbehaves", MISBEHAVIOUR.values(), ids=MISBEHAVIOUR)
async def test_a_misbehaving_issuer_or_server_gets_no_token_and_one_line_is_raised(
    world: World, misbehaves: Callable[[World], object]
) -> None:
    misbehaves(world)
    with pytest.raises(AuthError) as caught:
        await world.get(world.client())
    assert str(caught.value).isprintable()
    assert not world.other.site.received
    assert not [one for one in world.site.received if "authorization" in one.headers]


async def test_a_websocket_is_authorized_in_its_handshake(world: World) -> None:
    client = OAuth(f"ws{world.url.removeprefix('http')}", AuthorizationCode(Person()), web=Web(timeout=5))
    assert await world.get(client) == 200


@pytest.mark.parametrize("has_proofs", [False, True])
async def test_each_url_is_checked_against_the_document_that_names_it(
    world: World, monkeypatch: pytest.MonkeyPatch, has_proofs: bool
) -> None:
    issuer = world.issuer.site.url
    world.issuer.metadata["revocation_endpoint"] = f"{issuer}/revoke"
    if has_proofs:
        bind_tokens(world)
        demand_nonces(world)
    naming, tokens = Naming(monkeypatch), MemoryTokens()
    assert await world.get(world.client(tokens=tokens)) == 200
    stored = await read_login(tokens, world.url, None, lambda: world.now)
    assert stored is not None
    endpoint = TokenEndpoint(Web(), stored.login.discovery.issuer, stored.login.client, lambda: world.now)
    await endpoint.revoke(stored.token)
    assert naming.urls == {
        (f"{world.site.url}/.well-known/oauth-protected-resource/mcp", world.url),
        (f"{issuer}/.well-known/oauth-authorization-server", world.url),
        *((f"{issuer}/{path}", issuer) for path in ("register", "token", "revoke")),
    }


async def test_a_public_server_may_not_name_an_issuer_in_a_private_network() -> None:
    received: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        received.append(host)
        return ["93.184.216.34" if host == "public.example" else "10.0.0.1"]

    client = OAuth("https://public.example/mcp", AuthorizationCode(Person()), web=Web(resolve=resolve))
    named = 'Bearer resource_metadata="https://inside.example/metadata"'
    with pytest.raises(AuthError, match="more private"):
        await client.answered("POST", "https://public.example/mcp", 401, {"WWW-Authenticate": named})
    assert received == ["inside.example", "public.example"]
