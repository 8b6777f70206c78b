"""The seams between the parts: what stands behind each of them can be replaced by something of one's own.

Typed protocols only, and nothing that runs.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from .protocol.session.events import Outgoing
from .protocol.wire.jsonrpc import Message

if TYPE_CHECKING:
    from .protocol.http.rules import Denial, Headers
    from .protocol.identity import Principal

__all__ = ["Authenticator", "ByteStream", "ClosableTransport", "Transport"]


class Transport(Protocol):
    """A two-way stream of messages with one peer: `serve` drives it for a server, `Client` for a program."""

    async def receive(self) -> Sequence[Message]:
        """The next messages, as many as are there; waits for at least one.

        Raises `anyio.EndOfStream` when the peer has ended the stream in order: what is under way is finished
        and answered. Raises `anyio.BrokenResourceError` when the peer is gone: what is under way is cancelled.
        """

    async def send(self, outgoing: Sequence[Outgoing]) -> None:
        """Sends messages in their order; waits while the peer is too slow to take them.

        Raises `anyio.BrokenResourceError` when the peer is gone.
        """


class ClosableTransport(Transport, Protocol):
    """A transport that the one who drives it closes: a client does."""

    async def aclose(self) -> None:
        """Ends the connection in order. Never raises; may be called twice."""


class ByteStream(Protocol):
    """A two-way stream of bytes with one peer, of which `framed` makes a transport: what a transport of one's own
    has to be, where messages have no bounds there but those of their text. The byte streams of anyio are such."""

    async def receive(self) -> bytes:
        """The next bytes, as many as are there; waits for at least one.

        `b""` when the peer has ended the stream, for which `anyio.EndOfStream` may be raised as well. Raises OSError
        or `anyio.BrokenResourceError` when the peer is gone.
        """

    async def send(self, data: bytes, /) -> None:
        """Sends all of `data`; waits while the peer is too slow to take it. Raises like `receive` when the peer is
        gone."""

    async def aclose(self) -> None:
        """Ends the stream in order. Never raises; may be called twice."""


class Authenticator(Protocol):
    """Says who sends an HTTP request. It is asked once about each that is for this server, before all else."""

    async def authenticate(self, headers: "Headers") -> "Principal | Denial | None":
        """The sender of a request with these headers; None is nobody in particular, who is served as well."""
