"""`login`, `logout` and `accounts`: arguments, and changes to existing logins."""

import asyncio
import json
import re
import time
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from threading import Thread
from typing import Any

import anyio
import httpx
import pytest

from servers.bundle.commands import login
from servers.bundle.program import main
from servers.gateway.proxy.accounts import Accounts, stored_credentials
from shared.client.auth import AuthorizationCode, HttpxAuth
from shared.client.auth.store import FileTokens
from shared.errors import LoginRequired
from tests.servers.bundle.refusals import exit_code
from tests.servers.bundle.terminal.test_signal_wakeup import interrupt, tells_who_waits
from tests.shared.auth.sites import Answer
from tests.shared.client.auth.world import Person, World, open_world
from tests.shared.client.small import Small, listening

KEY = ("https://as.example", "https://mcp.example/mcp")


@pytest.fixture
def tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileTokens:
    """Returns the token store of the user of this test."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    # As without keyring: the keyring of this machine must not be used.
    monkeypatch.setattr("servers.gateway.proxy.accounts.find_spec", lambda _: None)
    return FileTokens(tmp_path / "mcp-server-bundle" / "accounts")


def run(*words: str) -> int:
    return exit_code(main, *words)


def given(url: str) -> Namespace:
    return Namespace(url=url, scope=[], client_metadata_url=None, no_browser=True, port=0)


async def logged_in(world: World, tokens: FileTokens) -> None:
    assert await world.get(world.client(AuthorizationCode(Person()), tokens=tokens)) == 200


REFUSED = [
    (["--port", "99999"], "argument --port: must be a port from 0 to 65535"),
    (["--port=-5"], "argument --port: must be a port"),
    (["--port", "0000099999"], "argument --port: must be a port"),
    (["--client-metadata-url", "http://client.example/us"], "must be an https URL with a path"),
    (["--client-metadata-url", "https://client.example/"], "must be an https URL with a path"),
    (["--client-metadata-url", "https://["], "must be an https URL with a path"),
    (["--client-id", "\udcff"], "--client-id is empty, too long, or has characters that can't be sent"),
    (["--client-id", ""], "--client-id is empty, too long, or has"),
    (["--client-id", "a", "--client-secret-file", "nowhere"], "-file: nowhere: No such file or directory\n"),
]


def test_unusable_arguments_of_login_are_refused(tokens: FileTokens, capsys: pytest.CaptureFixture[str]) -> None:
    for words, reason in REFUSED:
        assert run("login", "https://mcp.example/mcp", *words) == 2
        assert reason in capsys.readouterr().err


def test_an_unknown_keyring_backend_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "no.Such")
    # keyring caches the backend for the whole process.
    monkeypatch.setattr("keyring.core._keyring_backend", None)
    for words in (["accounts"], ["login", "http://127.0.0.1:1/mcp"], ["logout", "--all"]):
        assert run(*words) == 2
        assert "names no usable keyring: No module named 'no'" in capsys.readouterr().err


@pytest.mark.parametrize("expires", ["1e300", "1e999", "NaN", "-1e300", "1" + "0" * 400])
def test_an_impossible_expiry_is_listed_as_unknown(
    tokens: FileTokens, capsys: pytest.CaptureFixture[str], expires: str
) -> None:
    tokens.path.parent.mkdir(parents=True)
    entries = json.dumps({KEY[0]: {KEY[1]: {"access_token": "x", "token_type": "bearer", "scope": "", "expires": 0}}})
    tokens.path.write_text(f'{{"format": 1, "entries": {entries.replace(": 0}", f": {expires}}}")}}}')
    assert run("accounts") == 0
    assert "unknown" in capsys.readouterr().out
    assert run("accounts", "--json") == 0
    assert json.loads(capsys.readouterr().out)[0]["expires"] is None


async def test_a_denied_login_leaves_the_existing_login(
    tokens: FileTokens, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # tests/checks has the browser and its redirect; the functions below run within the loop of the test.
    monkeypatch.setattr(login, "Loopback", lambda *_, **__: nullcontext(Person()))
    async with open_world() as world:
        await logged_in(world, tokens)
        before = tokens.entries()
        world.issuer.callback = {"error": "access_denied", "code": None}
        assert await login._log_in(given(world.url), None, Accounts(tokens.path.parent)) == 1
        assert "access_denied" in capsys.readouterr().err
        assert tokens.entries() == before
        assert len(world.issuer.logins) == 2


@tells_who_waits
def test_ctrl_c_ends_a_login_waiting_for_the_browser(tokens: FileTokens, monkeypatch: pytest.MonkeyPatch) -> None:
    late: list[bool] = []

    @asynccontextmanager
    async def connect(*_: Any, **__: Any) -> AsyncIterator[None]:
        asyncio.get_running_loop().call_later(30, late.append, True)  # this timer would wake the loop in any case
        Thread(target=interrupt).start()
        await anyio.sleep_forever()
        yield

    monkeypatch.setattr(login, "connect", connect)
    assert run("login", "http://127.0.0.1:1/mcp", "--no-browser") == 130
    assert not late


async def test_login_ignores_an_earlier_issuer_of_a_server_without_login(
    tokens: FileTokens, capsys: pytest.CaptureFixture[str]
) -> None:
    async with listening(Small()) as (address, _):
        await tokens.put(("", f"http://{address}/mcp"), {"issuer": {"issuer": "https://as.example"}})
        assert await login._log_in(given(f"ws://{address}/mcp"), None, Accounts(tokens.path.parent)) == 0
    assert "needs no login" in capsys.readouterr().err


@pytest.mark.parametrize("revokes", [True, False])
async def test_logout_reports_whether_the_tokens_were_revoked(
    tokens: FileTokens, capsys: pytest.CaptureFixture[str], revokes: bool
) -> None:
    async with open_world() as world:
        world.issuer.metadata["revocation_endpoint"] = f"{world.issuer.site.url}/revoke"
        if revokes:
            world.issuer.answers["/revoke"] = lambda asked: Answer()
        await logged_in(world, tokens)
        url = world.url.replace("http", "ws", 1)
        assert await login._log_out(Accounts(tokens.path.parent), url) == 0
        assert world.issuer.site.count("/revoke") == 1
    stderr = capsys.readouterr().err
    assert ("remain valid until they expire" in stderr) is not revokes
    assert "logged out of " in stderr
    assert Accounts(tokens.path.parent).all() == []


def test_logout_without_the_keyring_is_refused(tokens: FileTokens, capsys: pytest.CaptureFixture[str]) -> None:
    pointer = {"issuer": {"issuer": KEY[0]}, "resource": KEY[1], "key": list(KEY)}
    anyio.run(tokens.put, ("", KEY[1]), pointer)
    anyio.run(tokens.put, KEY, {"scope": "", "in_keyring": True})
    assert run("logout", KEY[1]) == 2
    assert "in the system keyring, which is not available here" in capsys.readouterr().err
    assert set(tokens.entries()) == {KEY, ("", KEY[1])}


async def test_an_insufficient_scope_error_names_the_login_command(tokens: FileTokens) -> None:
    async with open_world() as world:
        world.now = time.time()
        await logged_in(world, tokens)
        challenge = 'Bearer error="insufficient_scope", scope="write"'
        world.judge = lambda asked, token: Answer(403, b"", {"www-authenticate": challenge})
        credentials = stored_credentials(world.url, tokens.path.parent)
        assert credentials is not None
        message = f"the login lacks the scope write; run `mcp-server-bundle login {world.url} --scope write`"
        with pytest.raises(LoginRequired, match=re.escape(message)):
            async with httpx.AsyncClient(auth=HttpxAuth(credentials)) as client:
                await client.get(world.url)
