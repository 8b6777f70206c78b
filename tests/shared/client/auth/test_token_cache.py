"""Tokens that several clients, programs or calls share: refreshed once, and not requested without need."""

import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from shared.client.auth import (
    AuthorizationCode,
    ClientCredentials,
    ClientInformation,
    MemoryTokens,
    OAuth,
    OAuthOptions,
    WorkloadIdentity,
)
from shared.client.auth.store import FileTokens
from shared.errors import AuthError, LoginRequired
from tests.shared.auth.sites import Answer, Received, as_json
from tests.shared.client.auth.world import CHALLENGE, Person, World, claims

HOUR = 3_600
SECRET = ClientInformation("mine", "given-secret", method="client_secret_post")


def rotate(world: World) -> None:
    """Makes the issuer accept each refresh token only once."""
    count = 0

    def answer(received: Received) -> Answer | None:
        nonlocal count
        given = received.form.get("refresh_token", [None])[0]
        if given not in (None, f"refresh-{count}"):
            return as_json({"error": "invalid_grant"}, 400)
        count += 1
        world.issuer.token = {"refresh_token": f"refresh-{count}"}
        return None

    world.issuer.answers["/token"] = answer


class Elsewhere(Person):
    """A person whose callback goes to another program."""

    redirect_uris = ("http://127.0.0.1:2/callback",)


# Several clients with the same tokens


async def test_an_idle_client_refreshes_with_the_newest_stored_refresh_token(world: World) -> None:
    rotate(world)
    tokens = MemoryTokens()
    idle, busy = world.client(tokens=tokens), world.client(tokens=tokens)
    await world.get(idle)
    for _ in range(2):
        await world.get(busy)
        world.now += HOUR
    assert await world.get(idle) == 200
    assert world.grants == ["authorization_code", "refresh_token", "refresh_token"]


async def test_a_refresh_token_outlives_a_temporary_error(world: World) -> None:
    world.issuer.token = {"refresh_token": "first"}
    client = world.client()
    await world.get(client)
    world.now += HOUR
    world.issuer.answers["/token"] = lambda received: as_json({"error": "temporarily_unavailable"}, 400)
    with pytest.raises(AuthError, match="temporarily_unavailable"):
        await world.get(client)
    del world.issuer.answers["/token"]
    assert await world.get(client) == 200
    assert world.grants == ["authorization_code", "refresh_token"]


async def test_after_another_error_of_a_refresh_the_user_logs_in_again(world: World) -> None:
    world.issuer.token = {"refresh_token": "first"}
    client = world.client()
    await world.get(client)
    world.now += HOUR

    def answer(received: Received) -> Answer | None:
        return as_json({"error": "invalid_request"}, 400) if "refresh_token" in received.form else None

    world.issuer.answers["/token"] = answer
    assert await world.get(client) == 200
    assert world.grants == ["authorization_code"] * 2


async def test_a_failed_refresh_of_a_valid_token_is_repeated_after_a_pause(world: World) -> None:
    world.issuer.token = {"refresh_token": "first"}
    client = world.client()
    await world.get(client)
    world.now += HOUR - 10
    world.issuer.answers["/token"] = lambda received: as_json({"error": "temporarily_unavailable"}, 400)
    requests = []
    for seconds in (0, 0, 5):
        world.now += seconds
        assert await world.get(client) == 200
        requests.append(world.issuer.site.count("/token"))
    assert requests == [2, 2, 3]


async def test_two_urls_of_the_same_resource_refresh_once(world: World) -> None:
    rotate(world)
    tokens, inner = MemoryTokens(), f"{world.url}/inner"
    one = world.client(tokens=tokens)
    other = OAuth(inner, AuthorizationCode(Person()), tokens=tokens, options=OAuthOptions(now=lambda: world.now))
    await world.get(one)
    await other.answered("GET", inner, 401, {"www-authenticate": CHALLENGE.format(world.site.url)})
    world.now += HOUR
    async with anyio.create_task_group() as group:
        group.start_soon(one.headers, "GET", world.url)
        group.start_soon(other.headers, "GET", inner)
    assert world.issuer.site.count("/token") == 3


PROCESS = """
import sys, time
from pathlib import Path
import anyio, httpx
from shared.client.auth import AuthorizationCode, HttpxAuth, OAuth, OAuthOptions
from shared.client.auth.store import FileTokens

async def main(url, folder):
    options = OAuthOptions(now=lambda: time.time() + 7_200)
    auth = OAuth(url, AuthorizationCode(None), tokens=FileTokens(Path(folder)), options=options)
    async with httpx.AsyncClient(auth=HttpxAuth(auth), trust_env=False) as http:
        print((await http.get(url)).status_code)

anyio.run(main, *sys.argv[1:])
"""


@pytest.mark.slow
async def test_several_processes_refresh_once(world: World, tmp_path: Path) -> None:
    rotate(world)
    world.now = time.time()
    await world.get(world.client(tokens=FileTokens(tmp_path / "accounts")))
    command = [sys.executable, "-c", PROCESS, world.url, str(tmp_path / "accounts")]
    as_json: list[bytes] = []

    async def run() -> None:
        as_json.append((await anyio.run_process(command, check=False)).stdout.strip())

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(run)
    assert as_json == [b"200"] * 3
    assert world.issuer.site.count("/token") == 2


async def test_a_second_registration_does_not_change_the_first_login(world: World) -> None:
    world.issuer.token = {"refresh_token": "first"}
    world.issuer.registration = {"client_id": "a", "client_secret": "secret-a"}
    tokens, inner = MemoryTokens(), f"{world.url}/inner"
    await world.get(world.client(tokens=tokens))
    world.issuer.registration = {"client_id": "b", "client_secret": "secret-b"}
    world.resource["resource"] = inner
    other = OAuth(inner, AuthorizationCode(Elsewhere()), tokens=tokens, options=OAuthOptions(now=lambda: world.now))
    await other.answered("GET", inner, 401, {"www-authenticate": CHALLENGE.format(world.site.url)})
    world.now += HOUR
    assert await world.get(world.client(AuthorizationCode(None), tokens=tokens)) == 200
    assert [login["client_id"] for login in world.issuer.logins] == ["a", "b"]
    assert world.issuer.site.received[-1].headers["authorization"] == "Basic YTpzZWNyZXQtYQ=="  # a:secret-a


class Full(MemoryTokens):
    """A store that refuses to write while it is full."""

    is_full = False

    async def put(self, key: tuple[str, str], value: Mapping[str, Any]) -> None:
        if self.is_full:
            raise AuthError("the tokens can't be kept: no space left")
        await super().put(key, value)


async def test_a_refreshed_token_is_used_even_if_the_store_is_full(world: World) -> None:
    rotate(world)
    tokens = Full()
    client = world.client(tokens=tokens)
    await world.get(client)
    tokens.is_full = True
    for _ in range(2):
        world.now += HOUR
        assert await world.get(client) == 200
    assert world.grants == ["authorization_code", "refresh_token", "refresh_token"]
    # A login is different: if it cannot be stored, the person would have to repeat it, so this is an error.
    with pytest.raises(AuthError, match="no space left"):
        await world.get(world.client(tokens=tokens, ignores_stored=True))


# Given client credentials


async def test_a_stored_client_secret_refreshes_tokens_for_other_programs(world: World) -> None:
    world.issuer.token, tokens = {"refresh_token": "first"}, MemoryTokens()
    await world.get(world.client(AuthorizationCode(Person(), SECRET), tokens=tokens, stores_client=True))
    world.now += HOUR
    assert await world.get(world.client(AuthorizationCode(None), tokens=tokens)) == 200
    assert world.issuer.forms[-1]["client_secret"] == "given-secret"


async def test_without_a_stored_client_others_use_the_token_until_it_expires(world: World) -> None:
    world.issuer.token, tokens = {"refresh_token": "first"}, MemoryTokens()
    grant = AuthorizationCode(Person(), SECRET)
    await world.get(world.client(grant, tokens=tokens))
    assert await world.get(world.client(AuthorizationCode(None), tokens=tokens)) == 200
    world.now += HOUR
    with pytest.raises(LoginRequired):
        await world.get(world.client(AuthorizationCode(None), tokens=tokens))
    assert await world.get(world.client(grant, tokens=tokens)) == 200
    assert world.grants == ["authorization_code", "refresh_token"]


async def move(world: World) -> None:
    """Makes the server name another issuer."""
    world.resource["authorization_servers"] = [world.other.site.url]
    world.issuer.issued.clear()


@pytest.mark.parametrize("writes_slash", ["server", "issuer"])
async def test_servers_and_root_issuers_may_differ_in_a_slash(world: World, writes_slash: str) -> None:
    root, tokens = f"{world.issuer.site.url}/", MemoryTokens()
    if writes_slash == "server":
        world.resource["authorization_servers"] = [root]
    else:
        world.issuer.metadata["issuer"] = root
    for _ in range(2):
        assert await world.get(world.client(ClientCredentials(SECRET), tokens=tokens)) == 200
        world.issuer.issued.clear()
    assert world.grants == ["client_credentials"] * 2


@pytest.mark.parametrize(
    "grant", [WorkloadIdentity("who-i-am"), ClientCredentials(SECRET)], ids=["workload", "secret"]
)
async def test_credentials_sent_to_one_issuer_are_never_sent_to_another(
    world: World, grant: WorkloadIdentity | ClientCredentials
) -> None:
    tokens = MemoryTokens()
    await world.get(world.client(grant, tokens=tokens))
    await move(world)
    for client in (world.client(grant, tokens=tokens), world.client(grant, tokens=tokens)):
        with pytest.raises(AuthError, match="no longer names"):
            await world.get(client)
    assert not world.other.forms


async def test_a_workload_identity_is_sent_only_to_its_named_issuer(world: World) -> None:
    grant = WorkloadIdentity("who-i-am", issuer=world.other.site.url)
    with pytest.raises(AuthError, match="no longer names"):
        await world.get(world.client(grant))
    assert not world.issuer.forms


# Requests without success


async def test_concurrent_requests_share_a_new_dpop_nonce(world: World) -> None:
    world.issuer.token = {"token_type": "DPoP"}
    client = world.client(proofs=True)
    await world.get(client)
    given = {"dpop_nonce": "new", "www_authenticate": 'DPoP error="use_dpop_nonce"'}

    def judge(received: Received, _token: str) -> Answer | None:
        return None if claims(received.headers["dpop"]).get("nonce") == "new" else as_json({}, 401, **given)

    world.judge, statuses = judge, []

    async def call() -> None:
        statuses.append(await world.get(client))

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(call)
    assert (statuses, len(world.issuer.logins)) == ([200] * 3, 1)


async def test_a_server_that_rejects_a_refreshed_token_requires_a_login(world: World) -> None:
    rotate(world)
    client = world.client()
    await world.get(client)
    world.judge = lambda received, token: world.refuse()
    with pytest.raises(AuthError, match="rejects every token"):
        await world.get(client)
    assert world.grants == ["authorization_code", "refresh_token", *["authorization_code"] * 3]


async def test_a_token_of_a_few_seconds_is_used_until_it_expires(world: World) -> None:
    world.issuer.token = {"expires_in": 20}
    client = world.client()
    for _ in range(2):
        assert await world.get(client) == 200
        world.now += 10
    assert len(world.issuer.logins) == 1


async def test_a_token_is_used_until_it_expires_while_the_issuer_is_down(world: World) -> None:
    rotate(world)
    client = world.client()
    await world.get(client)
    world.issuer.answers["/token"] = lambda received: Answer(503)
    world.now += HOUR - 20
    assert await world.get(client) == 200
    world.now += 20
    with pytest.raises(AuthError, match="HTTP 503"):
        await world.get(client)


def need_write(received: Received, token: str) -> Answer:
    return as_json({}, 403, www_authenticate='Bearer error="insufficient_scope", scope="write"')


async def test_a_scope_that_is_not_granted_is_requested_once(world: World) -> None:
    world.issuer.token = {"scope": "read"}
    client = world.client()
    for judge in (lambda received, token: None, need_write) * 2:
        world.judge = judge
        get = partial(world.get, client)
        if judge is need_write:
            with pytest.raises(AuthError, match="scope write"):
                await get()
        else:
            await get()
    assert [login["scope"] for login in world.issuer.logins] == ["read", "read write"]


async def test_login_required_names_the_scope_that_the_login_lacks(world: World) -> None:
    tokens = MemoryTokens()
    await world.get(world.client(tokens=tokens))
    world.judge = need_write
    grant = AuthorizationCode(None, advice=lambda lacks: f"run login --scope {' '.join(lacks)}")
    with pytest.raises(LoginRequired, match=r"^the login lacks the scope write; run login --scope write$"):
        await world.get(world.client(grant, tokens=tokens))


async def test_a_new_login_replaces_the_stored_one_only_if_it_succeeds(world: World) -> None:
    tokens = MemoryTokens()
    await world.get(world.client(tokens=tokens))
    world.issuer.callback = {"code": None, "error": "access_denied"}
    with pytest.raises(AuthError, match="access_denied"):
        await world.get(world.client(tokens=tokens, ignores_stored=True))
    assert await world.get(world.client(AuthorizationCode(None), tokens=tokens)) == 200
    world.issuer.callback = {}
    client = world.client(tokens=tokens, ignores_stored=True)
    await world.get(client)
    assert client.has_token
    assert len(world.issuer.logins) == 3
