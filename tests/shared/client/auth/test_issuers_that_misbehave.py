"""Issuers that are down, lie, or send us elsewhere: an error of one line, and nothing is given away."""

from collections.abc import Callable, Sequence

import pytest

from shared.auth.web import Web
from shared.client.auth import AuthorizationCode, OAuth
from shared.errors import AuthError
from tests.shared.auth.sites import Said, said
from tests.shared.client.auth.world import Person, World

METADATA = "/.well-known/oauth-authorization-server"


def _down(world: World) -> None:
    world.resource["authorization_servers"] = ["http://127.0.0.1:1"]


def _redirects(world: World) -> None:
    world.issuer.answers[METADATA] = lambda asked: Said(302, b"", {"location": f"{world.other.site.url}{METADATA}"})


def _lies(world: World) -> None:
    world.issuer.metadata["issuer"] = world.other.site.url


def _talks_nonsense(world: World) -> None:
    world.issuer.answers[METADATA] = lambda asked: Said(200, b"[" * 100_000)


def _never_ends(world: World) -> None:
    world.issuer.answers[METADATA] = lambda asked: Said(200, b" " * 600_000)


def _names_no_endpoint(world: World) -> None:
    world.issuer.metadata["token_endpoint"] = None


def _names_a_page_of_another_kind(world: World) -> None:
    world.issuer.metadata["authorization_endpoint"] = "javascript:alert(1)"


def _names_a_page_without_https(world: World) -> None:
    world.issuer.metadata["authorization_endpoint"] = "http://issuer.example/authorize"


def _tokens_elsewhere(world: World) -> None:
    world.issuer.answers["/token"] = lambda asked: Said(307, b"", {"location": f"{world.other.site.url}/token"})


def _issues_for_another_scheme(world: World) -> None:
    world.issuer.token["token_type"] = "mac"


def _issues_what_no_header_takes(world: World) -> None:
    world.issuer.token["access_token"] = "a\r\nx-evil: 1"


def _issues_nothing(world: World) -> None:
    world.issuer.answers["/token"] = lambda asked: said({})


def _registers_nobody(world: World) -> None:
    world.issuer.registration = {}


def _is_of_another_resource(world: World) -> None:
    world.resource["resource"] = "https://evil.example/mcp"


def _has_no_issuer(world: World) -> None:
    world.resource["authorization_servers"] = []


def _is_a_resource_that_is_no_url(world: World) -> None:
    world.resource["resource"] = "https://["


def _is_described_nowhere(world: World) -> None:
    world.challenge = 'Bearer resource_metadata="::::"'


def _is_half_an_address(world: World) -> None:
    world.resource["authorization_servers"] = ["https://["]


def _has_a_name_that_is_none(world: World) -> None:
    world.resource["authorization_servers"] = ["https://xn--a.-/"]


def _moves_the_cursor(world: World) -> None:
    world.resource["authorization_servers"] = ["https://as.example/\x01"]


def _has_tokens_at_half_an_address(world: World) -> None:
    world.issuer.metadata["token_endpoint"] = "https://["


def _registers_half_a_letter(world: World) -> None:
    world.issuer.registration["client_id"] = "\ud800"


def _registers_a_secret_of_half_a_letter(world: World) -> None:
    world.issuer.registration["client_secret"] = "\ud800"


def _wants_half_a_letter(world: World) -> None:
    world.resource["scopes_supported"] = ["\ud800"]
    world.challenge = "Bearer"


MISBEHAVIOUR: Sequence[Callable[[World], None]] = (
    *(_down, _redirects, _lies, _talks_nonsense, _never_ends, _names_no_endpoint, _names_a_page_of_another_kind),
    *(_names_a_page_without_https, _tokens_elsewhere, _issues_for_another_scheme, _issues_what_no_header_takes),
    *(_issues_nothing, _registers_nobody, _is_of_another_resource, _has_no_issuer, _is_a_resource_that_is_no_url),
    *(_is_described_nowhere, _is_half_an_address, _has_a_name_that_is_none, _moves_the_cursor),
    *(_has_tokens_at_half_an_address, _registers_half_a_letter, _registers_a_secret_of_half_a_letter),
    *(_wants_half_a_letter,),
)


@pytest.mark.parametrize("misbehave", MISBEHAVIOUR, ids=lambda one: one.__name__)
async def test_nothing_is_given_away(world: World, misbehave: Callable[[World], None]) -> None:
    misbehave(world)
    with pytest.raises(AuthError) as caught:
        await world.get(world.client())
    assert str(caught.value).isprintable()
    assert not world.other.site.asked
    assert not [one for one in world.site.asked if "authorization" in one.headers]


async def test_a_public_server_names_no_issuer_of_this_network() -> None:
    asked: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["93.184.216.34" if host == "public.example" else "10.0.0.1"]

    client = OAuth("https://public.example/mcp", AuthorizationCode(Person()), web=Web(resolve=resolve))
    named = 'Bearer resource_metadata="https://inside.example/metadata"'
    with pytest.raises(AuthError, match="not as public"):
        await client.answered("POST", "https://public.example/mcp", 401, {"WWW-Authenticate": named})
    assert asked == ["inside.example", "public.example"]
