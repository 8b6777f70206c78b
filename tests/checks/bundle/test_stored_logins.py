"""Servers at URLs with a stored login, as the commands and a gateway reach them; and what a gateway
keeps to itself."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from servers.gateway.proxy.remote import Remote
from shared.auth.metadata import IssuerMetadata, canonical
from shared.client.auth.discovery import Discovery
from shared.client.auth.grants import AuthorizationCode
from shared.client.auth.registration import ClientInformation
from shared.client.auth.store import FileTokens
from shared.client.auth.stored_login import Login, StoredLogin, store_login
from shared.client.auth.tokens import Token
from shared.client.connect import connect, connect_stdio
from shared.errors import PeerError
from tests.raw import ROOT
from tests.servers.bundle.commands.test_connect import CONNECT, PATIENCE, TOKEN, everything
from tests.wire import serving

CALLER = "the-token-of-the-caller"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Starts a server that accepts only the token of the login; yields its URL."""
    with everything(MCP_TOKEN=TOKEN) as url:
        yield url


@pytest.fixture
async def environment(url: str, tmp_path: Path) -> dict[str, str]:
    """Returns the environment of a user with a login to that server."""
    issuer = IssuerMetadata(issuer="https://as.example")
    login = Login(Discovery(issuer, None, None), ClientInformation("us"), (issuer.issuer, canonical(url)), None)
    tokens = FileTokens(tmp_path / "mcp-server-bundle" / "accounts")
    await store_login(
        tokens, url, StoredLogin(login, Token(TOKEN), frozenset()), AuthorizationCode(None), with_secrets=False
    )
    keyring = "keyring.backends.null.Keyring"
    return {**os.environ, "XDG_STATE_HOME": str(tmp_path), "PYTHON_KEYRING_BACKEND": keyring}


async def test_connect_uses_the_login(url: str, environment: dict[str, str]) -> None:
    with anyio.fail_after(PATIENCE):
        async with connect_stdio([*CONNECT, url], env=environment, cwd=ROOT) as client:
            assert (await client.call_tool("echo", {"text": "hi"})).text == "hi"


@pytest.mark.parametrize("token", [None, "another"], ids=["a login", "a token of its own"])
async def test_a_gateway_sends_its_own_login_and_never_the_token_of_its_caller(
    token: str | None, url: str, environment: dict[str, str], tmp_path: Path
) -> None:
    """The server behind it accepts only one token, and would refuse any other."""
    own = "" if token is None else ", headers: {authorization: 'Bearer another'}"
    config = tmp_path / "bundle.yaml"
    config.write_text(f"servers: {{other: {{url: '{url}'{own}}}}}")
    config.chmod(0o600)
    command = [sys.executable, "-m", "servers", "serve", "--config", str(config), "--port", "0"]
    with anyio.fail_after(PATIENCE):
        async with serving(command, env={**environment, "MCP_TOKEN": CALLER}) as base:
            remote = Remote.of(f"{base}/other/mcp", (), CALLER)
            if token is None:
                async with connect(remote.url, headers=remote.headers) as client:
                    assert (await client.call_tool("echo", {"text": "hi"})).text == "hi"
            else:
                with pytest.raises(PeerError):
                    async with connect(remote.url, headers=remote.headers) as client:
                        await client.call_tool("echo", {"text": "hi"})
