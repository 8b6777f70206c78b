"""Helpers of the network tests: resolvers with given answers, and servers that count connections."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpcore
import httpx
from anyio.abc import SocketStream

from servers.fetch.errors import FetchError
from servers.fetch.network.address_policy import Endpoint, Policy, Rules
from servers.fetch.network.client import ClientOptions, open_client
from servers.fetch.network.connecting import Resolver
from servers.fetch.network.urls import parse_url

PATIENCE = 20
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nSet-Cookie: kept=1\r\nConnection: close\r\n\r\nhello"


class Answers:
    """A resolver that returns the answers of each name in turn, and then repeats the last."""

    def __init__(self, **names: Sequence[str] | Sequence[Sequence[str]]) -> None:
        self._answers = {name.replace("_", "."): list(answers) for name, answers in names.items()}
        self.resolved: list[str] = []

    async def resolve(self, host: str) -> Sequence[str]:
        self.resolved.append(host)
        if host not in self._answers:
            raise FetchError("dns", f"could not resolve {host}")
        answers = self._answers[host]
        if isinstance(answers[0], str):
            return [str(address) for address in answers]
        return answers.pop(0) if len(answers) > 1 else answers[0]


class Recorder(httpcore.AsyncNetworkBackend):
    """A backend that makes no connections, and records their addresses."""

    def __init__(self) -> None:
        self.reached: list[tuple[str, int]] = []

    async def connect_tcp(self, host: str, port: int, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        self.reached.append((host, port))
        return httpcore.AsyncMockStream([ANSWER])


class Site:
    """A server on this machine, which sends the same answer to every request."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.requests: list[bytes] = []
        self.connections = 0
        self.greeting = b""
        self.answer: bytes | None = ANSWER
        """None sends no answer."""

    async def serve(self, stream: SocketStream) -> None:
        async with stream:
            self.connections += 1
            received = b""
            if self.greeting:
                await stream.send(self.greeting)
            try:
                while b"\r\n\r\n" not in received:
                    received += await stream.receive()
                self.requests.append(received)
                if self.answer is None:
                    await stream.receive()
                else:
                    await stream.send(self.answer)
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return

    async def count(self, address: str = "127.0.0.1") -> int:
        """Returns the number of connections. It makes another one first, which is accepted after all others."""
        async with await anyio.connect_tcp(address, self.port) as stream:
            await stream.send(b"GET / HTTP/1.1\r\n\r\n")
            await stream.receive()
        self.requests.pop()
        self.connections -= 1
        return self.connections


@asynccontextmanager
async def listening(address: str | None = "127.0.0.1", port: int = 0) -> AsyncIterator[Site]:
    """Runs a site at an address; None is every address."""
    listeners = await anyio.create_tcp_listener(local_host=address, local_port=port)
    site = Site(listeners.extra(anyio.abc.SocketAttribute.local_port))
    async with listeners, anyio.create_task_group() as tasks:
        tasks.start_soon(listeners.serve, site.serve)
        with anyio.fail_after(PATIENCE):
            yield site
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def reaching(
    resolver: Resolver | None = None,
    options: ClientOptions | None = None,
    own: Iterable[Endpoint] = (),
    **rules: Sequence[str] | Sequence[int],
) -> AsyncIterator["Reaching"]:
    """Yields a client under these rules."""
    policy = Policy(Rules(**rules), lambda: own)
    async with open_client(options or ClientOptions(), policy, resolver or Answers()) as client:
        yield Reaching(client)


class Reaching:
    """A client that takes URLs as text."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client

    async def get(self, url: str) -> str:
        return (await self.client.get(parse_url(url))).text

    async def refused(self, url: str) -> FetchError:
        """Returns the error of fetching the URL."""
        try:
            text = await self.get(url)
        except FetchError as error:
            return error
        raise AssertionError(f"{url} gave {text!r}")
