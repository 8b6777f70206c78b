"""Sends one request, and returns the decompressed response, within limits. Errors contain no secrets."""

from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import NamedTuple

import anyio
import httpcore
import httpx
from anyio.lowlevel import checkpoint

from ..errors import FetchError
from .decoding import make_unpacker
from .excerpt import MAX_READ
from .throttling import Share

REDIRECTS = frozenset({301, 302, 303, 307, 308})
MAX_HEADER_BYTES = 65_536
"""Maximum total size of a response's headers, in bytes."""
FREE_BYTES = 1_000_000
"""Number of bytes to which a body may decompress, whatever the ratio."""
MAX_RATIO = 100
"""Maximum ratio of a larger body's decompressed size to its size on the wire."""
REDIRECT_SECONDS = 0.5
"""Seconds to wait for a redirect's body."""
DISCONNECTED = "Server disconnected"
"""The beginning of httpcore's message if the site closes the connection before it responds."""
_CONNECTION_ERRORS = (httpcore.ReadError, httpcore.ReadTimeout, httpcore.WriteError, httpcore.LocalProtocolError)
"""Error causes that mean that the connection ended early, or accepts no more requests."""


class Limits(NamedTuple):
    """The limits of one body."""

    bytes: int
    """Maximum size, both as sent and decompressed."""
    cut: bool = False
    """True if a larger body is cut off at this size; otherwise a larger body is an error."""
    share: Share | None = None
    """The page's share of the byte budget, from which a large body reserves bytes; None for no budget."""


class Answer(NamedTuple):
    """The response to one request."""

    url: httpx.URL
    status: int
    headers: httpx.Headers
    body: bytes
    """The decompressed body; empty for a redirect, and only the beginning for an error status."""
    received: int
    """Size of the body in bytes as it was received, before decompression."""
    is_cut: bool = False
    """True if the body ended too early, so that its end is missing."""


class _Body:
    """The part of a body that has been read so far."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.received = 0
        """Number of bytes received, before decompression."""
        self.size = 0
        """Number of bytes after decompression."""
        self.is_complete = False
        self.is_cut = False
        # A list of pieces would take far more memory if a site sends single bytes.
        self.data = bytearray()

    def receive(self, count: int) -> None:
        self.received += count
        if self.received > self.limits.bytes and not self.limits.cut:
            raise _make_size_error(f"the body is larger than {self.limits.bytes:,} bytes as sent")

    def add(self, piece: bytes) -> bool:
        """Add a decompressed piece. Return False if the body is cut off after it, so that no more is needed."""
        self.size += len(piece)
        if self.size > max(FREE_BYTES, MAX_RATIO * self.received):
            raise _make_size_error(f"the body unpacks to more than {MAX_RATIO} times its size")
        excess = self.size - self.limits.bytes
        if excess > 0 and not self.limits.cut:
            raise _make_size_error(f"the body unpacks to more than {self.limits.bytes:,} bytes")
        self.data += piece[:-excess] if excess > 0 else piece
        return not self.limits.cut or excess < 0


class Exchange:
    """Sends GET requests with `client`, whose failures are FetchErrors with a cause, and waits at most
    `error_seconds` for the body of an error response.
    """

    def __init__(self, client: httpx.AsyncClient, error_seconds: float) -> None:
        self._client = client
        self._error_seconds = error_seconds
        self._closed_count = 0
        """Number of connections closed here that other requests may have been using."""

    async def get(self, url: httpx.URL, headers: Mapping[str, str], limits: Limits) -> Answer:
        """Return the response for `url`. Raises FetchError. Everything opened is always closed."""
        failures = 0
        while True:
            closed_count = self._closed_count
            try:
                return await self._send_once(url, headers, limits)
            except FetchError as error:
                # A pooled connection may already be dead, or close just as it is reused, so the request is retried
                # once (RFC 9110, 9.2.2). A failure does not count if `_send_once` may have closed the connection.
                failures += closed_count == self._closed_count
                was_disconnected = isinstance(error.__cause__, _CONNECTION_ERRORS) or DISCONNECTED in str(
                    error.__cause__
                )
                if failures > 1 or not was_disconnected:
                    raise _explain(error) from error.__cause__

    async def _send_once(self, url: httpx.URL, headers: Mapping[str, str], limits: Limits) -> Answer:
        # The request is built here, since the client would add its own cookies and headers.
        extensions = {"timeout": self._client.timeout.as_dict()}
        # The host is set here, because httpx would decode it first, which fails for some names that exist in the DNS.
        all_headers = {"host": url.netloc.decode("ascii"), **headers}
        request = httpx.Request("GET", url, headers=all_headers, extensions=extensions)
        try:
            response = await self._client.send(request, stream=True, follow_redirects=False)
        except (httpx.InvalidURL, httpx.HTTPError, UnicodeError):
            # All failures are FetchErrors except this: httpx parses the `Location` although it must not follow it.
            raise FetchError("bad_url", "the site redirects to a URL that is not valid") from None
        body = _Body(limits)
        try:
            if sum(len(name) + len(value) for name, value in response.headers.raw) > MAX_HEADER_BYTES:
                raise _make_size_error(f"the headers are larger than {MAX_HEADER_BYTES:,} bytes")
            if response.status_code > 999:
                raise FetchError("bad_response", "the status of the response is not a valid HTTP status")
            if response.status_code < 200:
                raise FetchError("bad_response", "the site wants to switch to another protocol")
            if response.status_code < 300 and not limits.cut and _read_length(response) > limits.bytes:
                raise _make_size_error(f"the body is larger than {limits.bytes:,} bytes as sent")
            body = await self._read_body(response, limits)
        finally:
            with anyio.CancelScope(shield=True):
                stream = response.extensions.get("network_stream")
                if not body.is_complete and stream is not None and response.http_version == "HTTP/2":
                    # httpcore can't close a single stream. The stream would stay open, and after a hundred of them
                    # the connection would accept no more. So close the connection; its other requests are retried.
                    self._closed_count += 1
                    await stream.aclose()
                await response.aclose()
        if limits.share is not None:
            limits.share.shrink_to(body.size)
        return Answer(url, response.status_code, response.headers, bytes(body.data), body.received, body.is_cut)

    async def _read_body(self, response: httpx.Response, limits: Limits) -> _Body:
        if response.status_code < 400 and not _is_redirect(response):
            body = _Body(limits)
            try:
                await self._read_into(body, response)
            except FetchError as error:
                # Browsers show the part of a page that has arrived. Part of a robots.txt may lack a rule.
                if limits.cut or not body.data or not (body.is_complete or _ends_early(error)):
                    raise
                body.is_cut = True
            return body
        body = _Body(Limits(MAX_READ, cut=True))
        if _is_redirect(response) and _read_length(response) > MAX_READ:
            return body
        # The status is reported even if the body can't be read. A redirect's body is read only so that the connection
        # can be reused.
        seconds = REDIRECT_SECONDS if _is_redirect(response) else self._error_seconds
        with anyio.move_on_after(seconds), suppress(FetchError):
            await self._read_into(body, response)
        return body

    async def _read_into(self, body: _Body, response: httpx.Response) -> None:
        encoding = response.headers.get("content-encoding", "")
        unpacker = make_unpacker(encoding)
        length = -1 if encoding else _read_length(response)
        async for chunk in response.aiter_raw():
            body.receive(len(chunk))
            for piece in unpacker.feed(chunk):
                if body.limits.share is not None:
                    size = body.size + len(piece)
                    # A body that is larger than declared was compressed without a declaration.
                    limit = body.limits.bytes if size > length else min(length, body.limits.bytes)
                    await body.limits.share.ensure(size, limit)
                if not body.add(piece):
                    return
            # One read may yield many small chunks; other tasks need a turn in between.
            await checkpoint()
        body.is_complete = True
        if not unpacker.is_complete():
            raise FetchError("bad_response", "the compressed body ends too early")


def _is_redirect(response: httpx.Response) -> bool:
    return response.status_code in REDIRECTS and "location" in response.headers


def _read_length(response: httpx.Response) -> int:
    """Return the body length that the response declares; -1 if it declares none."""
    length = response.headers.get("content-length", "")
    return int(length[:20]) if length.isascii() and length.isdigit() else -1


def _make_size_error(reason: str) -> FetchError:
    return FetchError("too_large", reason)


def _explain(error: FetchError) -> FetchError:
    """Return a more precise error if the client only reports a violation of HTTP."""
    message = str(error.__cause__)
    if error.code != "bad_response" or not isinstance(error.__cause__, httpcore.ProtocolError):
        return error
    if DISCONNECTED in message:
        return FetchError("connect", "the site ended the connection")
    if "buffer too long" in message:
        return _make_size_error(f"the headers are larger than {MAX_HEADER_BYTES:,} bytes")
    if _ends_early(error):
        return FetchError("bad_response", "the body is shorter than the response declares")
    return error


def _ends_early(error: FetchError) -> bool:
    """Return True if the connection ended before the end of the body."""
    message = str(error.__cause__)
    return isinstance(error.__cause__, httpcore.ProtocolError) and (
        "complete message" in message or "incomplete" in message
    )


def http_date(text: str | None) -> float | None:
    """Return an HTTP date in seconds since 1970, or None if `text` is not a date."""
    try:
        return parsedate_to_datetime(text or "").timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def retry_after(text: str | None, now: float) -> float | None:
    """Return the seconds to wait given in `Retry-After`, as a number or as a date. `now` is in seconds since 1970."""
    text = (text or "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:12])
    date = http_date(text)
    return None if date is None else max(0.0, date - now)
