"""Drives FastMCP's client, whose user has no browser here."""

import logging
import time
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastmcp.client import Client
from fastmcp.client.auth import ClientCredentialsOAuthProvider, OAuth
from key_value.aio.stores.memory import MemoryStore
from mcp.shared.auth import AuthorizationCodeResult, OAuthToken
from ways import SECONDS, Login, drive

warnings.simplefilter("ignore")  # that tokens in memory do not last, and what its dependencies are told
logging.disable(logging.ERROR)  # each failure is an outcome already


class Headless(OAuth):
    """The user follows the login by other means, and brings back what the redirect says."""

    def __init__(self, login: Login) -> None:
        super().__init__(
            login.url, client_id=login.id, client_metadata_url=login.document, token_storage=MemoryStore()
        )
        self._login = login
        self._came: dict[str, str] = {}

    async def redirect_handler(self, authorization_url: str) -> None:
        self._came = await self._login.person.open(authorization_url)

    async def callback_handler(self) -> AuthorizationCodeResult:
        if "error" in self._came:
            raise PermissionError(self._came["error"])
        return AuthorizationCodeResult(code=self._came["code"], state=self._came["state"], iss=self._came["iss"])


class Connection:
    def __init__(self, client: Client[Any], provider: OAuth) -> None:
        self._client = client
        self._context = provider.context

    async def call(self, name: str, arguments: dict[str, str]) -> str:
        return (await self._client.call_tool(name, arguments)).content[0].text

    async def age(self) -> str:
        self._context.token_expiry_time = time.time() - 1
        return await self.token()

    async def token(self) -> str:
        return self._context.current_tokens.access_token


class Peer:
    @asynccontextmanager
    async def connect(self, login: Login) -> AsyncIterator[Connection]:
        if login.secret is not None:
            provider = ClientCredentialsOAuthProvider(login.url, client_id=login.id or "", client_secret=login.secret)
        else:
            provider = Headless(login)
            if login.token is not None:
                await provider.token_storage_adapter.set_tokens(OAuthToken(access_token=login.token))
        async with Client(login.url, auth=provider, timeout=SECONDS) as client:
            yield Connection(client, provider)


if __name__ == "__main__":
    drive(Peer())
