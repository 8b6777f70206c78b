"""Drives the client of the official Python SDK 2.x."""

import logging
import time
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from mcp.shared.exceptions import MCPDeprecationWarning
from person import REDIRECT
from ways import SECONDS, Login, drive

warnings.simplefilter("ignore", MCPDeprecationWarning)  # that the issuer of a program's secret is not named
logging.disable(logging.ERROR)  # each failure is an outcome already

METADATA = {
    "redirect_uris": [REDIRECT],
    "grant_types": ["authorization_code", "refresh_token"],
    "token_endpoint_auth_method": "none",
}


class Storage:
    """In memory."""

    def __init__(self, login: Login) -> None:
        self._tokens = None if login.token is None else OAuthToken(access_token=login.token)
        known = login.id is not None
        self._client = OAuthClientInformationFull(client_id=login.id, **METADATA) if known else None

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


def provider_of(login: Login) -> OAuthClientProvider:
    storage = Storage(login)
    if login.secret is not None:
        return ClientCredentialsOAuthProvider(login.url, storage, login.id or "", login.secret)
    came: dict[str, str] = {}

    async def redirect(url: str) -> None:
        came.update(await login.person.open(url))

    async def callback() -> AuthorizationCodeResult:
        if "error" in came:
            raise PermissionError(came["error"])
        return AuthorizationCodeResult(code=came["code"], state=came["state"], iss=came["iss"])

    metadata = OAuthClientMetadata(client_name="the official client", **METADATA)
    return OAuthClientProvider(login.url, metadata, storage, redirect, callback, login.document)


class Connection:
    def __init__(self, client: Client, provider: OAuthClientProvider) -> None:
        self._client = client
        self._context = provider.context

    async def call(self, name: str, arguments: dict[str, str]) -> str:
        result = await self._client.call_tool(name, arguments)
        if result.is_error:
            raise RuntimeError(str(result.content))
        return result.content[0].text

    async def age(self) -> str:
        self._context.token_expiry_time = time.time() - 1
        return await self.token()

    async def token(self) -> str:
        return self._context.current_tokens.access_token


class Peer:
    @asynccontextmanager
    async def connect(self, login: Login) -> AsyncIterator[Connection]:
        provider = provider_of(login)
        async with httpx2.AsyncClient(auth=provider, timeout=SECONDS) as http:
            transport = streamable_http_client(login.url, http_client=http)
            async with Client(transport, read_timeout_seconds=SECONDS) as client:
                yield Connection(client, provider)


if __name__ == "__main__":
    drive(Peer())
