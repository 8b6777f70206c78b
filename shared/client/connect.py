"""A client of a server, however it is reached: as a child process, or at a URL."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..protocol.wire.codec import Codec, Framing
from ..transports.framed import framed
from ..transports.process import Stderr, inherited_environment, start_process
from .client import Client
from .options import ClientOptions

if TYPE_CHECKING:
    import httpx

__all__ = ["connect_http", "connect_stdio", "connect_websocket"]


@asynccontextmanager
async def connect_stdio(
    command: Sequence[str],
    options: ClientOptions | None = None,
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    stderr: Stderr = "log",
    framing: Framing = "lines",
) -> AsyncIterator[Client]:
    """A client of the server that `command` starts; both end with the block. Its environment is `env` over
    `inherited_environment()`. `framing` is that of what is sent; what comes may have either.

    Raises OSError when the command can't be started, and what entering a `Client` raises.
    """
    codec = Codec(is_client=True, framing=framing)
    process = start_process(command, env={**inherited_environment(), **(env or {})}, cwd=cwd, stderr=stderr)
    async with process as stream, Client(framed(stream, codec), options) as client:
        yield client


@asynccontextmanager
async def connect_http(
    url: str,
    options: ClientOptions | None = None,
    *,
    token: str | None = None,
    headers: Mapping[str, str] | None = None,
    http: httpx.AsyncClient | None = None,
) -> AsyncIterator[Client]:
    """A client of the server at `url`. `token` is sent as a bearer token; `headers` go with every request; `http`
    replaces the HTTP client, for proxies and certificates, and is not closed.

    Raises what entering a `Client` raises. A server that wants another token, or any, answers PeerError 401 or 403.
    """
    from ..transports.http.client import open_http

    async with open_http(url, _fixed(token, headers), http) as transport, Client(transport, options) as client:
        yield client


@asynccontextmanager
async def connect_websocket(
    url: str,
    options: ClientOptions | None = None,
    *,
    token: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> AsyncIterator[Client]:
    """A client of the server at `url`, which begins with ws:// or wss://. `token` is sent as a bearer token, and
    `headers` with it, in the handshake alone.

    Raises what `open_websocket` raises, PeerError 401 or 403 among it, and what entering a `Client` raises.
    """
    from ..transports.websocket import open_websocket

    async with open_websocket(url, _fixed(token, headers)) as transport, Client(transport, options) as client:
        yield client


def _fixed(token: str | None, headers: Mapping[str, str] | None) -> dict[str, str]:
    """The headers that are sent whatever is asked."""
    return {**(headers or {}), **({} if token is None else {"authorization": f"Bearer {token}"})}
