"""The client transport for a `ws://` or `wss://` URL: one message in each text frame, in both directions.

The library `websockets` manages the connection, pings the server, and closes the connection if there is no answer. If
a server refuses the upgrade, its HTTP response is reported like that of any other request.
"""

import logging
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import anyio
from websockets.asyncio.client import ClientConnection, connect
from websockets.datastructures import Headers
from websockets.exceptions import (
    ConnectionClosed,
    ConnectionClosedOK,
    InvalidHandshake,
    InvalidProxy,
    InvalidStatus,
    InvalidURI,
)
from websockets.http11 import Response
from websockets.typing import Subprotocol

from ..contracts import Credentials
from ..errors import PeerError
from ..protocol.http.retry_after import retry_data
from ..protocol.session.events import Outgoing
from ..protocol.wire.codec import MAX_MESSAGE, Codec
from ..protocol.wire.jsonrpc import Failure, Message

CONNECT_SECONDS = 30.0
"""Seconds for the connection and the handshake."""
CLOSE_SECONDS = 2.0
"""Seconds that the server has to answer a close frame."""
MAX_ATTEMPTS = 6
"""Maximum number of times that the handshake is sent, for the reasons in `http/client/authorized.py`."""
_SUBPROTOCOLS = (Subprotocol("mcp"),)
_frames_log = logging.getLogger("shared.transports.websocket.frames")
"""The logger of `websockets`, which would record the headers, including a token, and the contents of frames."""
_frames_log.setLevel(logging.WARNING)


class WebSocketTransport:
    """The messages to and from one server."""

    def __init__(self, socket: ClientConnection, dialect: str | None = None) -> None:
        self._socket = socket
        self._codec = Codec(is_client=True, line_end=b"", dialect=dialect)

    async def receive(self) -> Sequence[Message]:
        """Return the next message. Raises EndOfStream if the server has closed the connection properly, otherwise
        BrokenResourceError."""
        try:
            return [self._codec.decode_body(await self._socket.recv(decode=False))]
        except ConnectionClosedOK:
            raise anyio.EndOfStream from None
        except ConnectionClosed:
            raise anyio.BrokenResourceError from None

    async def send(self, outgoing: Sequence[Outgoing]) -> None:
        """Send messages; waits while the server is slow. Raises BrokenResourceError once the connection is closed."""
        try:
            texts = [self._codec.encode(item.message) for item in outgoing if item.message is not None]
            for text in filter(None, texts):  # empty if the dialect can't express the message
                await self._socket.send(text, text=True)
        except ConnectionClosed:
            raise anyio.BrokenResourceError from None

    async def aclose(self) -> None:
        """Close the connection. Shielded, so that the socket and its tasks do not remain after a cancellation."""
        with anyio.CancelScope(shield=True):
            await self._socket.close()


@asynccontextmanager
async def open_websocket(
    url: str, headers: Mapping[str, str], credentials: Credentials | None = None, dialect: str | None = None
) -> AsyncIterator[WebSocketTransport]:
    """Open a transport to `url` for the duration of the block; `headers`, and the headers from `credentials`, are
    sent with the handshake. `dialect` is as in `ClientOptions`.

    Raises ValueError for any other kind of URL, and OSError if the connection fails, such as ConnectionError if the
    server does not speak WebSocket, or the proxy from the environment can't be used. If the server refuses, raises
    PeerError with the HTTP status as its code.
    """
    socket = await (_connect(url, headers) if credentials is None else _connect_authorized(url, headers, credentials))
    transport = WebSocketTransport(socket, dialect)
    try:
        if credentials is not None and socket.response is not None:
            # Credentials count how often they are refused, so they must learn that they were accepted.
            answer = socket.response
            await credentials.answered("GET", _as_http(url), answer.status_code, _join_headers(answer.headers))
        yield transport
    finally:
        await transport.aclose()


async def _connect_authorized(url: str, headers: Mapping[str, str], credentials: Credentials) -> ClientConnection:
    http_url, attempts = _as_http(url), 0
    while True:
        attempts += 1
        credential_headers = await credentials.headers("GET", http_url)
        try:
            return await _connect(url, {**headers, **credential_headers})
        except PeerError as error:
            invalid_status = error.__cause__
            if not isinstance(invalid_status, InvalidStatus):
                raise
            answer = invalid_status.response
            has_new_credentials = await credentials.answered(
                "GET", http_url, answer.status_code, _join_headers(answer.headers)
            )
            if not has_new_credentials or attempts == MAX_ATTEMPTS:
                raise


def _as_http(url: str) -> str:
    """Return the URL with http or https instead of ws or wss: tokens name the resource in this form."""
    return f"http{url[2:]}"


def _join_headers(headers: Headers) -> Headers:
    """Join the values of each repeated header (RFC 9110, section 5.3), for which `items` raises an error."""
    joined: dict[str, str] = {}
    for name, value in headers.raw_items():
        key = name.lower()
        joined[key] = f"{joined[key]}, {value}" if key in joined else value
    return Headers(joined)


async def _connect(url: str, headers: Mapping[str, str]) -> ClientConnection:
    try:
        return await _Connect(
            url,
            subprotocols=_SUBPROTOCOLS,
            additional_headers=headers,
            user_agent_header=None,
            compression=None,
            max_size=MAX_MESSAGE,
            open_timeout=CONNECT_SECONDS,
            close_timeout=CLOSE_SECONDS,
            logger=_frames_log,
        )
    except InvalidURI as error:
        raise ValueError(f"not a WebSocket URL, which starts with ws:// or wss://: {error.msg}") from None
    except (InvalidProxy, ImportError) as error:
        # ImportError: a SOCKS proxy requires another package. These errors' messages do not contain the URL of the
        # proxy, which may include a password.
        raise ConnectionError(f"the proxy that is set in the environment can't be used: {error.msg}") from None
    except InvalidStatus as invalid_status:
        raise _peer_error(invalid_status.response) from invalid_status
    except InvalidHandshake as error:
        raise ConnectionError(f"the server does not support WebSocket: {error}") from None


class _Connect(connect):
    def process_redirect(self, exc: Exception) -> Exception | str:
        """Follow no redirect, so that another server can't get the token."""
        return exc


def _peer_error(response: Response) -> PeerError:
    message = Codec(is_client=True).decode_body(response.body or b"")
    reason = message.message if isinstance(message, Failure) else response.reason_phrase
    status, headers = response.status_code, response.headers
    data = retry_data(status, next(iter(headers.get_all("retry-after")), None), time.time())
    return PeerError(f"HTTP {status}: {reason}", code=status, data=data)
