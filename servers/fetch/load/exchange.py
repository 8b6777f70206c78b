"""One request and its answer: within the limits, decompressed, and without repeating anything secret."""

from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import NamedTuple

import anyio
import httpcore
import httpx
from anyio.lowlevel import checkpoint

from servers.fetch.errors import FetchError
from servers.fetch.load.decoding import make_unpacker
from servers.fetch.load.excerpt import READ
from servers.fetch.load.throttling import Share

REDIRECTS = frozenset({301, 302, 303, 307, 308})
HEADERS = 65_536
"""Largest total size of the headers of an answer, in bytes."""
FREE = 1_000_000
"""Bytes that a body may unpack to, whatever the ratio."""
RATIO = 100
"""Largest ratio of the unpacked size of a larger body to its size on the wire."""
REDIRECT_TIME = 0.5
"""Seconds to wait for the body of a redirect."""
DISCONNECTED = "Server disconnected"
_BROKEN = (httpcore.ReadError, httpcore.ReadTimeout, httpcore.WriteError, httpcore.LocalProtocolError)
"""Causes if the connection ended early, or can no longer take requests."""


class Limits(NamedTuple):
    """The limits of one body."""

    bytes: int
    """Largest size, as sent and unpacked."""
    cut: bool = False
    """True if a larger one is cut off there; otherwise it is an error."""
    share: Share | None = None
    """The share of the budget to take its room from, if it may be large."""


class Answer(NamedTuple):
    """The answer to one request."""

    url: httpx.URL
    status: int
    headers: httpx.Headers
    body: bytes
    """Unpacked. Empty for a redirect, only the beginning for an error."""
    received: int


class _Body:
    """The part of a body that was read so far."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.received = 0
        self.size = 0
        self.whole = False
        # Not a list of pieces: a site may send them by the byte.
        self.data = bytearray()

    def receive(self, count: int) -> None:
        self.received += count
        if self.received > self.limits.bytes and not self.limits.cut:
            raise _too_large(f"the body is larger than {self.limits.bytes:,} bytes as sent")

    def add(self, piece: bytes) -> bool:
        """Add a piece, and return False if the body is complete."""
        self.size += len(piece)
        if self.size > max(FREE, RATIO * self.received):
            raise _too_large(f"the body unpacks to more than {RATIO} times its size")
        excess = self.size - self.limits.bytes
        if excess > 0 and not self.limits.cut:
            raise _too_large(f"the body unpacks to more than {self.limits.bytes:,} bytes")
        self.data += piece[:-excess] if excess > 0 else piece
        return not self.limits.cut or excess < 0


class Exchange:
    """Sends GET requests by `client`, whose failures are FetchErrors with a cause. It waits `patience` seconds for
    the body of an error.
    """

    def __init__(self, client: httpx.AsyncClient, patience: float) -> None:
        self._client = client
        self._patience = patience
        self._ended = 0
        """Number of connections ended here that others may have used."""

    async def get(self, url: httpx.URL, headers: Mapping[str, str], limits: Limits) -> Answer:
        """Return the answer of `url`. Raises FetchError; everything opened is closed in every case."""
        failures = 0
        while True:
            ended = self._ended
            try:
                return await self._once(url, headers, limits)
            except FetchError as error:
                # A pooled connection may end at the moment it is used again, or be dead already: one more try
                # (RFC 9110, 9.2.2). It does not count if the connection may have been ended here.
                failures += ended == self._ended
                broke_off = isinstance(error.__cause__, _BROKEN) or DISCONNECTED in str(error.__cause__)
                if failures > 1 or not broke_off:
                    raise _sharper(error) from error.__cause__

    async def _once(self, url: httpx.URL, headers: Mapping[str, str], limits: Limits) -> Answer:
        # Not by the client's own builder: neither its cookies nor its headers shall be sent.
        patience = {"timeout": self._client.timeout.as_dict()}
        # The host is set, because httpx would decode it first, which fails for some names that the DNS has.
        named = {"host": url.netloc.decode("ascii"), **headers}
        request = httpx.Request("GET", url, headers=named, extensions=patience)
        try:
            response = await self._client.send(request, stream=True, follow_redirects=False)
        except (httpx.InvalidURL, httpx.HTTPError, UnicodeError):
            # All failures are FetchErrors, but for this: httpx parses the Location though it shall not follow it.
            raise FetchError("bad_url", "the site redirects to a URL that is not valid") from None
        body = _Body(limits)
        try:
            _check_headers(response, limits)
            body = await self._body(response, limits)
        finally:
            with anyio.CancelScope(shield=True):
                stream = response.extensions.get("network_stream")
                if not body.whole and stream is not None and response.http_version == "HTTP/2":
                    # httpcore has no way to end one stream: it would stay open, and the hundredth would be the last
                    # of its connection. Others that use the connection try again.
                    self._ended += 1
                    await stream.aclose()
                await response.aclose()
        if limits.share is not None:
            limits.share.shrink_to(body.size)
        return Answer(url, response.status_code, response.headers, bytes(body.data), body.received)

    async def _body(self, response: httpx.Response, limits: Limits) -> _Body:
        if response.status_code < 400 and not _is_redirect(response):
            body = _Body(limits)
            await self._read_into(body, response)
            return body
        body = _Body(Limits(READ, cut=True))
        if _is_redirect(response) and _length(response) > READ:
            return body
        # The status is reported even if the body fails. The body of a redirect is only read so that the connection
        # can be used again.
        patience = REDIRECT_TIME if _is_redirect(response) else self._patience
        with anyio.move_on_after(patience), suppress(FetchError):
            await self._read_into(body, response)
        return body

    async def _read_into(self, body: _Body, response: httpx.Response) -> None:
        encoding = response.headers.get("content-encoding", "")
        unpacked = make_unpacker(encoding)
        length = -1 if encoding else _length(response)
        most = body.limits.bytes if length < 0 else min(length, body.limits.bytes)
        async for chunk in response.aiter_raw():
            body.receive(len(chunk))
            for piece in unpacked.feed(chunk):
                if body.limits.share is not None:
                    await body.limits.share.need(body.size + len(piece), most)
                if not body.add(piece):
                    return
            # One read may yield many small chunks, and the other tasks need their turn.
            await checkpoint()
        body.whole = True
        unpacked.close()


def _check_headers(response: httpx.Response, limits: Limits) -> None:
    if sum(len(name) + len(value) for name, value in response.headers.raw) > HEADERS:
        raise _too_large(f"the headers are larger than {HEADERS:,} bytes")
    if response.status_code > 999:
        raise FetchError("bad_response", "the status of the answer is not a valid HTTP status")
    if response.status_code < 200:
        raise FetchError("bad_response", "the site wants to switch to another protocol")
    if response.status_code < 300 and not limits.cut and _length(response) > limits.bytes:
        raise _too_large(f"the body is larger than {limits.bytes:,} bytes as sent")


def _is_redirect(response: httpx.Response) -> bool:
    return response.status_code in REDIRECTS and "location" in response.headers


def _length(response: httpx.Response) -> int:
    """Return the length of the body that the answer declares; -1 if it declares none."""
    length = response.headers.get("content-length", "")
    return int(length[:20]) if length.isascii() and length.isdigit() else -1


def _too_large(reason: str) -> FetchError:
    return FetchError("too_large", reason)


def _sharper(error: FetchError) -> FetchError:
    """Return a more precise error if the client only knows that the rules of HTTP were broken."""
    message = str(error.__cause__)
    if error.code != "bad_response" or not isinstance(error.__cause__, httpcore.ProtocolError):
        return error
    if DISCONNECTED in message:
        return FetchError("connect", "the site ended the connection")
    if "buffer too long" in message:
        return _too_large(f"the headers are larger than {HEADERS:,} bytes")
    if "complete message" in message or "incomplete" in message:
        return FetchError("bad_response", "the body is shorter than the answer says")
    return error


def http_date(text: str | None) -> float | None:
    """Return an HTTP date in seconds since 1970, or None if `text` is not one."""
    try:
        return parsedate_to_datetime(text or "").timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def retry_after(text: str | None, now: float) -> float | None:
    """Return the seconds to wait that `Retry-After` names, as a number or as a date; `now` in seconds since 1970."""
    text = (text or "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:12])
    date = http_date(text)
    return None if date is None else max(0.0, date - now)
