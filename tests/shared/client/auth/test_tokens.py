"""Use, refresh, storage and step-up of tokens, also by concurrent calls."""

from pathlib import Path

import anyio
import httpx
import pytest

from shared.client.auth import AuthorizationCode, ClientInformation, HttpxAuth, MemoryTokens
from shared.client.auth.store import FileTokens
from shared.errors import AuthError
from tests.raw import NO_TLS
from tests.shared.auth.sites import Answer, Received, as_json
from tests.shared.client.auth.world import Person, World

REFRESHED = {"refresh_token": "first"}


async def _all(world: World, *clients: object, times: int = 5) -> None:
    async with anyio.create_task_group() as group:
        for _ in range(times):
            for client in clients:
                group.start_soon(world.get, client)


async def test_concurrent_calls_share_a_login(world: World) -> None:
    await _all(world, world.client())
    assert len(world.issuer.logins) == 1


async def test_concurrent_calls_share_a_failed_login(world: World) -> None:
    world.issuer.callback = {"code": None, "error": "access_denied"}
    client, failed = world.client(), []

    async def call() -> None:
        with pytest.raises(AuthError, match="access_denied"):
            await world.get(client)
        failed.append(1)

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(call)
    assert (len(failed), len(world.issuer.logins)) == (5, 1)


async def test_a_failed_login_can_be_repeated(world: World) -> None:
    world.issuer.callback, client = {"code": None, "error": "access_denied"}, world.client()
    for _ in range(4):
        with pytest.raises(AuthError, match="access_denied"):
            await world.get(client)
    world.issuer.callback = {}
    assert await world.get(client) == 200


async def test_concurrent_calls_share_a_refresh(world: World) -> None:
    world.issuer.token = REFRESHED
    client = world.client()
    await world.get(client)
    world.now += 3_600
    await _all(world, client)
    assert world.grants == ["authorization_code", "refresh_token"]
    assert world.issuer.forms[1]["resource"] == world.url


async def test_two_programs_with_the_same_store_refresh_once(world: World, tmp_path: Path) -> None:
    world.issuer.token = REFRESHED
    clients = [world.client(tokens=FileTokens(tmp_path / "accounts")) for _ in range(2)]  # each as in its own process
    for client in clients:
        await world.get(client)
    world.now += 3_600
    await _all(world, *clients)
    assert world.grants == ["authorization_code", "refresh_token"]


async def test_the_newest_refresh_token_is_used(world: World) -> None:
    world.issuer.token, client = REFRESHED, world.client()
    await world.get(client)
    for given in ({"refresh_token": "second"}, {"refresh_token": None}, {}):
        world.now += 3_600
        world.issuer.token = given
        await world.get(client)
    assert [form.get("refresh_token") for form in world.issuer.forms] == [None, "first", "second", "second"]


async def test_a_refused_token_is_refreshed(world: World) -> None:
    world.issuer.token, client = REFRESHED, world.client()
    await world.get(client)
    world.issuer.issued.clear()
    assert await world.get(client) == 200
    assert world.grants == ["authorization_code", "refresh_token"]


async def test_a_refused_refresh_token_requires_a_login(world: World) -> None:
    world.issuer.token, client = REFRESHED, world.client()
    await world.get(client)
    world.issuer.answers["/token"] = lambda received: (
        as_json({"error": "invalid_grant"}, 400) if b"grant_type=refresh" in received.body else None
    )
    world.now += 3_600
    assert await world.get(client) == 200
    assert len(world.issuer.logins) == 2


async def test_a_temporary_failure_of_a_refresh_requires_no_login(world: World) -> None:
    world.issuer.token, client = REFRESHED, world.client()
    await world.get(client)
    world.now += 3_600
    world.issuer.answers["/token"] = lambda received: Answer(503)
    with pytest.raises(AuthError, match="HTTP 503"):
        await world.get(client)
    world.issuer.answers.clear()
    assert await world.get(client) == 200
    assert len(world.issuer.logins) == 1


async def test_the_next_program_uses_the_stored_token(world: World) -> None:
    tokens = MemoryTokens()
    await world.get(world.client(tokens=tokens))
    assert await world.get(world.client(AuthorizationCode(None), tokens=tokens)) == 200
    assert len(world.issuer.logins) == 1


async def test_the_stored_token_of_another_client_is_not_used(world: World) -> None:
    tokens = MemoryTokens()
    await world.get(world.client(tokens=tokens))
    await world.get(world.client(AuthorizationCode(Person(), ClientInformation("mine")), tokens=tokens))
    assert [login["client_id"] for login in world.issuer.logins] == ["made-up", "mine"]


async def test_a_given_client_secret_is_not_stored(world: World) -> None:
    tokens = MemoryTokens()
    given = ClientInformation("mine", "given-secret")
    await world.get(world.client(AuthorizationCode(Person(), given), tokens=tokens))
    assert "given-secret" not in str(vars(tokens))
    assert "given-secret" not in repr(given)


async def test_a_token_is_sent_only_to_its_server(world: World) -> None:
    client = world.client()
    await world.get(client)
    assert await client.headers("GET", world.url)
    assert not await client.headers("GET", f"{world.other.site.url}/mcp")
    assert not await client.answered("GET", f"{world.other.site.url}/mcp", 401, {})


async def test_a_redirect_to_another_server_gets_no_token_and_no_login(world: World) -> None:
    world.judge = lambda received, token: Answer(307, b"", {"location": f"{world.other.site.url}/mcp"})
    world.other.answers["/mcp"] = lambda received: world.refuse()
    async with httpx.AsyncClient(auth=HttpxAuth(world.client()), follow_redirects=True, verify=NO_TLS) as http:
        assert (await http.get(world.url)).status_code == 401
    (received,) = world.other.site.received
    assert "authorization" not in received.headers
    assert len(world.issuer.logins) == 1


def _needing(world: World, *scopes: str) -> None:
    """Makes calls require each of `scopes`, one after the other."""
    world.issuer.token["scope"] = None

    def judge(received: Received, token: str) -> Answer | None:
        granted = world.issuer.logins[-1]["scope"].split()
        missing = [scope for scope in scopes if scope not in granted][:1]
        error = f'Bearer error="insufficient_scope", scope="{missing[0]}"' if missing else ""
        return as_json({}, 403, www_authenticate=error) if missing else None

    world.judge = judge


async def test_a_step_up_requests_the_earlier_scopes_as_well(world: World) -> None:
    _needing(world, "write")
    assert await world.get(world.client()) == 200
    assert [login["scope"] for login in world.issuer.logins] == ["read", "read write"]


async def test_a_request_obtains_at_most_three_tokens(world: World) -> None:
    _needing(world, "a", "b", "c", "d")
    with pytest.raises(AuthError, match="scope c"):
        await world.get(world.client())
    assert len(world.issuer.logins) == 3


async def test_scopes_of_the_token_are_not_requested_again(world: World) -> None:
    world.judge = lambda received, token: as_json(
        {}, 403, www_authenticate='Bearer error="insufficient_scope", scope="read"'
    )
    with pytest.raises(AuthError, match="scope read"):
        await world.get(world.client())
    assert len(world.issuer.logins) == 1


async def test_a_403_without_a_challenge_is_returned(world: World) -> None:
    world.judge = lambda received, token: as_json({}, 403)
    assert await world.get(world.client()) == 403


async def test_a_new_issuer_gets_no_credentials_of_the_old_issuer(world: World) -> None:
    world.issuer.token, world.other.registration = REFRESHED, {"client_id": "anew"}
    client = world.client()
    await world.get(client)
    world.resource["authorization_servers"] = [world.other.site.url]
    world.issuer.issued.clear()
    assert await world.get(client) == 200
    assert [login["client_id"] for login in world.other.logins] == ["anew"]
    shown = b"".join(one.path.encode() + one.body for one in world.other.site.received)
    assert b"made-up" not in shown
    assert b"first" not in shown
