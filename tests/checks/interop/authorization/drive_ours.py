"""Drives our client."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from person import REDIRECT, Person
from ways import Login, drive

from shared.client.auth.grants import AuthorizationCode, ClientCredentials, Grant
from shared.client.auth.oauth import OAuth, OAuthOptions
from shared.client.auth.registration import ClientInformation
from shared.client.auth.tokens import MemoryTokens
from shared.client.client import Client
from shared.client.connect import connect_http


class Redirect:
    """Hands a login to the user."""

    redirect_uris = (REDIRECT,)

    def __init__(self, person: Person) -> None:
        self._person = person

    async def open(self, url: str) -> Mapping[str, str]:
        return await self._person.open(url)


class Store(MemoryTokens):
    """Has besides what it keeps the place of it."""

    def __init__(self) -> None:
        super().__init__()
        self.key = ("", "")

    async def put(self, key: tuple[str, str], value: Mapping[str, Any]) -> None:
        await super().put(key, value)
        if "access_token" in value:
            self.key = key

    async def token(self) -> str:
        return str((await self.get(self.key) or {})["access_token"])

    async def kind(self) -> str:
        return str((await self.get(self.key) or {})["token_type"])

    async def change(self, **changed: Any) -> None:
        await self.put(self.key, {**(await self.get(self.key) or {}), **changed})


def grant_of(login: Login, person: Person) -> Grant:
    client = None if login.id is None else ClientInformation(login.id, login.secret)
    if client is not None and login.secret is not None:
        return ClientCredentials(client)
    return AuthorizationCode(Redirect(person), client, login.document)


class Connection:
    """A client, and those that come after it with what it has left in the store."""

    def __init__(self, login: Login, store: Store) -> None:
        self._login = login
        self._store = store
        self._clients = AsyncExitStack()
        self._client: Client

    async def open(self, person: Person) -> None:
        await self._clients.aclose()
        options = OAuthOptions(proofs=self._login.bound or None)
        auth = OAuth(self._login.url, grant_of(self._login, person), tokens=self._store, options=options)
        self._client = await self._clients.enter_async_context(connect_http(self._login.url, auth=auth))

    async def close(self) -> None:
        await self._clients.aclose()

    async def call(self, name: str, arguments: dict[str, str]) -> str:
        result = await self._client.call_tool(name, arguments)
        if result.is_error:
            raise RuntimeError(str(result.content))
        return result.text

    async def age(self) -> str:
        old = await self.token()
        await self._store.change(expires=1)
        await self.open(self._login.person)
        return old

    async def token(self) -> str:
        return await self._store.token()

    async def kind(self) -> str:
        return await self._store.kind()


class Peer:
    @asynccontextmanager
    async def connect(self, login: Login) -> AsyncIterator[Connection]:
        connection = Connection(login, store := Store())
        try:
            if login.token is not None:
                await connection.open(Person())
                await store.change(
                    access_token=login.token, token_type="bearer", scope="filesystem:read", refresh_token=None
                )
            await connection.open(login.person)
            yield connection
        finally:
            await connection.close()


if __name__ == "__main__":
    drive(Peer())
