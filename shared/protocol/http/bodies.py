"""The body of a request, collected piece by piece up to a limit. It may be compressed with gzip (RFC 1952).

A few bytes of gzip can expand to gigabytes. So they are inflated in steps, until the limit is exceeded: a body takes
at most the limit and one step in memory. The limit also applies to the received bytes, since gzip data may go on
forever without content.
"""

import zlib

from .rules import Headers, Refusal, is_gzip, refuse

_WRAPPED_IN_GZIP = 31  # the `wbits` with which zlib reads a gzip header and trailer
_STEP_BYTES = 65_536
"""Maximum number of bytes that are inflated at a time."""


def check_length(headers: Headers, limit: int) -> Refusal | None:
    """Return a refusal with status 413 if the `headers` announce more than `limit` bytes."""
    length = headers.get("content-length")
    if length is not None and (not length.isdecimal() or int(length[:20]) > limit):
        return _too_large(limit)
    return None


def make_body(headers: Headers, limit: int) -> "Body":
    """Return an empty body for a request with these `headers`, which `check_content` has accepted."""
    return GzipBody(limit) if is_gzip(headers) else Body(limit)


class Body:
    """A plain body. `data` contains the bytes received so far."""

    __slots__ = ("data", "limit")

    def __init__(self, limit: int) -> None:
        self.data = bytearray()
        self.limit = limit

    def feed(self, piece: bytes) -> Refusal | None:
        """Add the next piece. Return a refusal with status 413 if the body exceeds the limit."""
        self.data += piece
        return _too_large(self.limit) if len(self.data) > self.limit else None

    def end(self) -> Refusal | None:
        """End the body. Return a refusal if it is incomplete."""
        return None


class GzipBody(Body):
    """A gzipped body, which must be a single gzip member. `data` contains the inflated bytes."""

    __slots__ = ("_inflater", "_received")

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._inflater = zlib.decompressobj(_WRAPPED_IN_GZIP)
        self._received = 0

    def feed(self, piece: bytes) -> Refusal | None:
        """Add the next piece. Return a refusal with status 413 for a body over the limit, or 400 for invalid gzip."""
        self._received += len(piece)
        try:
            while True:
                step = self._inflater.decompress(piece, _STEP_BYTES)
                if super().feed(step) is not None or self._received > self.limit:
                    return _too_large(self.limit)
                if len(step) < _STEP_BYTES:
                    break
                piece = self._inflater.unconsumed_tail
        except zlib.error:
            return refuse(400, "the body is not valid gzip")
        return refuse(400, "the gzipped body continues after its end") if self._inflater.unused_data else None

    def end(self) -> Refusal | None:
        """End the body. Return a refusal with status 400 if it is incomplete."""
        return None if self._inflater.eof else refuse(400, "the gzipped body ends too early")


def _too_large(limit: int) -> Refusal:
    return refuse(413, f"the body may have at most {limit:,} bytes")
