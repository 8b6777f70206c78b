"""TLS connections whose errors explain a failure, and HTTP/2 connections that detect a dead peer.

The certificate authorities of the system and of the operator's file are trusted. The minimum version is TLS 1.2.
SHA-1 signatures and keys with less than 112 bits of strength are rejected, however this Python was built.

An idle HTTP/2 connection may be dead: a router forgot it, or the peer left silently. A request on it would wait for
its whole time limit, and so would each retry, because the pool reuses the connection. So a silent peer is sent a ping
(RFC 9113, 6.7), and the connection is closed if there is no reply. A site that is merely slow replies to the ping,
and the request may use its whole time limit.
"""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import anyio
from anyio import CancelScope
from httpcore import AsyncNetworkStream, ConnectError, ConnectTimeout, ReadTimeout
from truststore import SSLContext

from ..errors import TRY_LATER, FetchError

# Keyed by OpenSSL's X509_V_ERR_... numbers, for which Python has no names.
_CERTIFICATE_ERRORS = {
    9: "is not valid yet",
    10: "has expired",
    18: "is self-signed and not trusted",
    19: "comes from an authority that is not trusted",
    20: "comes from an authority that is not trusted",
    21: "comes from an authority that is not trusted",
    23: "has been revoked",
    26: "is not a server certificate",
    62: "is for another host",
    64: "is for another address",
    66: "has a key that is too weak",
    67: "comes from an authority whose key is too weak",
    68: "has a signature that is too weak",
}
_UNTRUSTED_ISSUERS = {18, 19, 20, 21}
"""The numbers of errors about an authority that is not trusted."""
# Keyed by OpenSSL's reasons.
_HANDSHAKE_ERRORS = {
    "UNSUPPORTED_PROTOCOL": "does not support TLS 1.2 or newer",
    "TLSV1_ALERT_PROTOCOL_VERSION": "does not support TLS 1.2 or newer",
    "WRONG_VERSION_NUMBER": "does not speak TLS on this port",
    "PACKET_LENGTH_TOO_LONG": "does not speak TLS on this port",
    "RECORD_LAYER_FAILURE": "does not speak TLS on this port",
    "HTTP_REQUEST": "does not speak TLS on this port",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "requires a client certificate",
    "WRONG_SIGNATURE_TYPE": "signs with a method that is too weak",
    "DH_KEY_TOO_SMALL": "has a key that is too weak",
    "EE_KEY_TOO_SMALL": "has a certificate with a key that is too weak",
    "CA_MD_TOO_WEAK": "has a certificate with a signature that is too weak",
    "TLSV1_UNRECOGNIZED_NAME": "has no certificate for this host",
}

MAX_SILENCE_SECONDS = 3.0
"""Maximum number of seconds without data before a peer is sent a ping, and maximum wait for the reply."""
SILENCE_SHARE = 0.2
"""The same maximum as a fraction of the time limit for one read; the smaller of the two applies."""
PING = bytes((0, 0, 8, 6, 0, 0, 0, 0, 0)) + b"anybody?"

_used_streams: ContextVar[list["Http2Stream"] | None] = ContextVar("used", default=None)


def tls_context(ca_file: Path | None) -> ssl.SSLContext:
    """Return the TLS context of all connections, which verifies host names. `ca_file` has certificates as PEM.

    Raises ValueError if it can't be read or contains no certificates.
    """
    context = SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("DEFAULT:@SECLEVEL=2")
    if ca_file is not None:
        try:
            context.load_verify_locations(cafile=ca_file)
        except ssl.SSLError:
            raise ValueError(f"{ca_file} contains no PEM certificates") from None
        except OSError as error:
            raise ValueError(f"{ca_file}: {error.strerror}") from None
    return context


class TlsStream(AsyncNetworkStream):
    """A connection that can be upgraded to TLS. A failure of TLS is a FetchError with code `tls` or `timeout`."""

    def __init__(self, inner: AsyncNetworkStream, host: str) -> None:
        self._inner = inner
        self._host = host

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 (httpcore's name)
        """Read the bytes that have arrived; b"" at the end."""
        try:
            return await self._inner.read(max_bytes, timeout)
        except ssl.SSLError as error:
            raise _explain(error, self._host) from error

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 (httpcore's name)
        """Write all of the buffer."""
        try:
            await self._inner.write(buffer, timeout)
        except ssl.SSLError as error:
            raise _explain(error, self._host) from error

    async def aclose(self) -> None:
        """Close the connection."""
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 (httpcore's name)
    ) -> AsyncNetworkStream:
        """Begin TLS, and verify the host's certificate."""
        host = server_hostname or self._host
        succeeded = False
        try:
            stream = TlsStream(await self._inner.start_tls(ssl_context, host, timeout), host)
            succeeded = True
        except ConnectTimeout as error:
            reason = f"{host} did not complete the TLS handshake within {timeout:g} s"
            raise FetchError("timeout", reason, TRY_LATER) from error
        except ConnectError as error:
            raise _explain(error.__cause__, host) from error
        finally:
            if not succeeded:
                # Close the connection even after a cancellation: the caller has no reference to it.
                with CancelScope(shield=True):
                    await self._inner.aclose()
        ssl_object = stream.get_extra_info("ssl_object")
        is_http_2 = ssl_object is not None and ssl_object.selected_alpn_protocol() == "h2"
        return Http2Stream(stream) if is_http_2 else stream

    def get_extra_info(self, info: str) -> Any:
        """Return information about the connection, by its name in httpcore."""
        return self._inner.get_extra_info(info)


def _explain(error: BaseException | None, host: str) -> FetchError:
    if isinstance(error, ssl.SSLCertVerificationError):
        code = error.verify_code
        advice = "The operator can add the authority with --ca-file" if code in _UNTRUSTED_ISSUERS else ""
        return FetchError("tls", f"the certificate of {host} {_CERTIFICATE_ERRORS.get(code, 'is not valid')}", advice)
    if isinstance(error, ssl.SSLError):
        reason = _HANDSHAKE_ERRORS.get(error.reason or "", "failed the TLS handshake")
        return FetchError("tls", f"{host} {reason}")
    return FetchError("tls", f"{host} ended the connection during the TLS handshake")


@contextmanager
def record_streams() -> Iterator[list["Http2Stream"]]:
    """Yield the list of connections on which this task sends data during the block."""
    streams: list[Http2Stream] = []
    token = _used_streams.set(streams)
    try:
        yield streams
    finally:
        _used_streams.reset(token)


class Http2Stream(AsyncNetworkStream):
    """An HTTP/2 connection, on which only whole frames are written."""

    def __init__(self, inner: AsyncNetworkStream) -> None:
        self._inner = inner
        self._write_lock = anyio.Lock()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 (httpcore's name)
        """Read the bytes that have arrived; b"" at the end. Raises httpcore.ReadTimeout and closes the connection if
        its peer is dead.
        """
        silence = MAX_SILENCE_SECONDS if timeout is None else min(MAX_SILENCE_SECONDS, SILENCE_SHARE * timeout)
        try:
            return await self._inner.read(max_bytes, silence)
        except ReadTimeout:
            await self._write(PING, silence)
        try:
            return await self._inner.read(max_bytes, silence)
        except ReadTimeout:
            with anyio.CancelScope(shield=True):
                await self.aclose()
            raise

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 (httpcore's name)
        """Write all of the buffer."""
        if (streams := _used_streams.get()) is not None and self not in streams:
            streams.append(self)
        await self._write(buffer, timeout)

    async def _write(self, frames: bytes, seconds: float | None) -> None:
        async with self._write_lock:
            await self._inner.write(frames, seconds)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._inner.aclose()

    def get_extra_info(self, info: str) -> Any:
        """Return information about the connection, by its name in httpcore."""
        return self._inner.get_extra_info(info)
