"""Converts between the bytes of one connection and its messages, in both directions.

A `Codec` remembers what the peer's first data has determined for the rest of the connection. The first bytes
determine the framing: lines, or headers with `Content-Length`, which a server accepts only if it accepts dialects.
The first message that is a JSON object determines whether the peer follows the specification, or another description
of the protocol: a dialect (see `dialects`), which then converts all messages.

Decoding never raises because of the peer's input: invalid input becomes `Malformed`, which contains the error to
answer. Decisions where the specifications leave room:

* the parser is pydantic-core's: at most 200 levels of nesting, NaN and Infinity refused, integers of any
  size up to 4,300 digits, invalid UTF-8 and lone surrogates refused; a number beyond the range of a double, such
  as 1e999, reads as infinity, as in Python's own parser;
* a JSON text that the parser refuses is parsed again, leniently, to find its id and the path of the error. A request
  is answered with -32602 if the path is in its params, with -32600 if it is elsewhere, and with -32700 if no path is
  known. In a notification, which can't be answered, U+FFFD replaces invalid text. An answer to a request of ours
  becomes an error, so that the request does not wait forever;
* the last of duplicate keys counts, as in nearly every parser; names are compared exactly, so `"Method"` is an
  unknown key and not a method;
* an `id` is a string or an integer; `true`, `1.5` and `null` are refused (-32600), "7" and 7 differ;
* an error whose request is unknown has no `id` key at all: no schema has `null`;
* if an answer has both a result and an error, the one that is `null` is ignored; an error whose code is not an
  integer, such as the `"ENOENT"` that some programs pass on, is an internal error with its message;
* in output NaN and Infinity become `null`, and lone surrogates U+FFFD, so that the output is always JSON.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic_core import PydanticSerializationError, from_json, to_json

from ...errors import InternalError, InvalidParams, InvalidRequest, ParseError, RpcError
from ...steps import Steps, complete
from .dialects import DialectConnection, client_dialect, find_dialect
from .framing import LineBuffer, Oversized
from .jsonrpc import (
    Batch,
    Failure,
    Malformed,
    Message,
    Notification,
    Prepared,
    Request,
    RequestId,
    Response,
    error_object,
    failure,
    json_of,
    scrub,
)
from .salvage import EDGE_BYTES, read_answer_id, read_request_id, salvage
from .weight import HEAVY_BYTES, MAX_LIGHT_BYTES, MAX_LONG_DIGITS, MAX_VALUES, count_steps, weigh, weigh_value

if TYPE_CHECKING:  # needed only for peers with headers
    from .content_length import ContentLengthBuffer, Frame, Misframed

log = logging.getLogger("shared.protocol.wire")

Framing = Literal["lines", "content-length"]
"""The framing of a stream, which separates its messages."""

_NO_MESSAGE = "an error without a message"
_HEADERS = b"content-length:", b"content-type:"
_MAX_NAME = max(map(len, _HEADERS))

MAX_MESSAGE = 64 * 1024 * 1024
"""Default maximum size of a message, in bytes."""


class Codec:
    """The decoder and encoder of one connection.

    A byte stream is read with `feed`, piece by piece, and `end`, and written with `encode`. Messages with boundaries
    are read with `feed_body` if they belong to one stream, like those of a WebSocket, and with `decode_body` if each
    is independent, like a POST. The variants that end in `_steps` are for large input.
    """

    __slots__ = (
        "_frames",
        "_has_headers",
        "_is_body_truncated",
        "_is_client",
        "_is_standard",
        "_line_end",
        "_max_message",
        "_start",
        "dialect",
    )

    def __init__(
        self,
        max_message: int = MAX_MESSAGE,
        *,
        is_client: bool = False,
        line_end: bytes = b"\n",
        framing: Framing = "lines",
        dialects: bool = False,
        dialect: str | None = None,
    ) -> None:
        """A message of more than `max_message` bytes is dropped, and reading continues after it. A server answers it
        with an error, which has the id of the request if the start or the end of the message shows one; a client does
        not. A server refuses a message with too many values in the same way. `line_end` is written after each
        message; it is empty for messages that have other boundaries. `framing` is for messages that a client writes;
        a server uses the framing of its peer. With `dialects`, the peer of a server may use a dialect, and
        `Content-Length` framing. `dialect` is the number of the document whose dialect a client uses; None for the
        specification. Raises ValueError if that number is unknown."""
        self._max_message = max_message
        self._is_client = is_client
        self._has_headers = framing == "content-length"
        self._line_end = b"" if self._has_headers else line_end
        self._start = b""
        self._frames: LineBuffer | ContentLengthBuffer | None = None
        self._is_body_truncated = False
        self._is_standard = not dialects and dialect is None
        self.dialect: DialectConnection | None = None if dialect is None else client_dialect(dialect)
        """The peer's dialect, once its first message has determined it; None for the specification."""

    def feed_steps(self, data: bytes) -> Steps[list[Message]]:
        """Return what `feed` returns, in steps."""
        parts = () if self._frames is None else self._frames.feed(data)
        return (yield from self._read_all(parts))

    def feed(self, data: bytes) -> list[Message]:
        """Return the messages that `data` completes."""
        frames = self._frames
        if frames is None:
            data, self._start = self._start + data, b""
            frames = self._frames = self._make_frames(data)
            if frames is None:
                self._start = data
                return []
        parts = frames.feed(data)
        # Nearly all connections have neither headers nor a dialect, and need no further checks.
        if self._is_standard and isinstance(frames, LineBuffer):
            messages: list[Message] = []
            try:
                for line in parts:
                    messages += (
                        (decode(line),)
                        if isinstance(line, bytes) and len(line) <= MAX_LIGHT_BYTES
                        else complete(self._read(line))
                    )
                return messages
            except _BUG_ERRORS:  # the error occurs again below, where it is answered
                pass
        return complete(self._read_all(parts))

    def end(self) -> list[Message]:
        """End the stream. Return the message in its last line, if that has no line ending, or the error if the stream
        ended within a message."""
        frames = self._frames or LineBuffer(self._max_message)
        return complete(self._read_all([*frames.feed(self._start), *frames.end()]))

    def feed_body(self, body: bytes | bytearray) -> list[Message]:
        """Return the messages in the next JSON text of a stream that keeps the boundaries of messages."""
        return complete(self.feed_body_steps(bytes(body)))

    def feed_body_steps(self, body: bytes) -> Steps[list[Message]]:
        """Return what `feed_body` returns, in steps."""
        return self._read(body)

    def decode_body(self, body: bytes | bytearray) -> Message:
        """Return the message in `body`, a JSON text that is independent of others."""
        return complete(self.decode_body_steps(bytes(body)))

    def decode_body_steps(self, body: bytes) -> Steps[Message]:
        """Return what `decode_body` returns, in steps."""
        if self._is_standard and len(body) <= MAX_LIGHT_BYTES:  # true for most messages
            return decode(body)
        return (yield from self._read_text(body, is_stream=False))[0]

    def encode(self, message: Message) -> bytes:
        """Return `message` as compact JSON in UTF-8, with the framing of the connection; empty if the peer's dialect
        has no form for it. `Malformed` is written as its error."""
        value: Any
        if self.dialect is not None:
            try:
                value = self.dialect.write(message)
            except _BUG_ERRORS:
                log.exception("a message could not be written in the dialect of document %s", self.dialect.document)
                value = None
                if isinstance(message, Response):
                    value = self.dialect.write(failure(message.id, InternalError("internal error")))
            if value is None:
                return b""
        elif not isinstance(message, Response):
            value = json_value(message)
        elif isinstance(message.result, Prepared):
            result = message.result.json
            # The result, such as a list of tools, is the same for all clients and was serialized before. To do that
            # again would take most of the time of the request.
            data = b'{"jsonrpc":"2.0","id":%b,"result":%b}%b' % (json_of(message.id), result, self._line_end)
            return self._with_header(data) if self._has_headers else data
        else:
            value = {"jsonrpc": "2.0", "id": message.id, "result": message.result}
        try:
            data = to_json(value, inf_nan_mode="null") + self._line_end
        except PydanticSerializationError:
            # For example, a log message of the server's author with a value that JSON can't express. It must not end
            # the connection.
            data = to_json(
                scrub(value),
                inf_nan_mode="null",
                bytes_mode="base64",
                fallback=lambda item: f"<{type(item).__name__}>",
                serialize_unknown=True,
            )
            data += self._line_end
        return self._with_header(data) if self._has_headers else data

    def _read_all(self, frames: "Sequence[Frame]") -> Steps[list[Message]]:
        """Return the messages in `frames`."""
        messages: list[Message] = []
        for frame in frames:
            # The peer sent a length that was too small, and has received an error for the truncated body. This is the
            # rest of that body, so it is skipped instead of answered with a second error.
            if not isinstance(frame, bytes | Oversized) and frame.may_be_rest and self._is_body_truncated:
                continue
            read = yield from self._read(frame)
            self._is_body_truncated = any(
                isinstance(item, Malformed) and item.failure.code == ParseError.code for item in read
            )
            messages += read
        return messages

    def _read(self, frame: "Frame") -> Steps[list[Message]]:
        """Return the messages in one JSON text of a stream. If a bug in this package prevents this, the text is
        answered with an internal error, so that its sender does not wait forever."""
        try:
            return (yield from self._read_text(frame, is_stream=True))
        except _BUG_ERRORS:
            log.exception("a message could not be read")
        text = frame if isinstance(frame, bytes) else b""
        return [self._replace_non_object(_refuse(text, InternalError("internal error")))]

    def _read_text(self, frame: "Frame", *, is_stream: bool) -> Steps[list[Message]]:
        """Return the messages in one JSON text. The first text determines the peer's dialect. A server refuses a text
        with too many values."""
        if not isinstance(frame, bytes):
            return [self._replace_non_object(self._refuse_dropped(frame))]
        values = 0 if self._is_client or len(frame) <= MAX_LIGHT_BYTES else (yield from count_steps(frame))
        if values > MAX_VALUES:
            error = InvalidRequest(
                f"a message may have at most {MAX_VALUES:,} values and names, and {MAX_LONG_DIGITS:,} digits of "
                "integers beyond 64 bits: send less at once"
            )
            return [self._replace_non_object(_refuse(frame, error))]
        weight = weigh(frame, values) if values else 0
        if weight >= HEAVY_BYTES:
            yield
        try:
            # The parser's cache of short strings helps if names repeat. If all names of a large text are different,
            # it doubles the time.
            value = from_json(frame, allow_inf_nan=False, cache_strings="none" if weight >= HEAVY_BYTES else "all")
        except ValueError as error:
            if weight >= HEAVY_BYTES:
                yield
            return [(yield from self._salvage(frame, _parse_error(frame, error), is_stream=is_stream))]
        if isinstance(value, dict):
            return self._read_object(value, weight, is_stream=is_stream)
        message = (yield from _batch_steps(value, weight)) if isinstance(value, list) else _read_message(value)
        return [self._replace_non_object(message)]

    def _salvage(self, frame: bytes, error: ParseError, *, is_stream: bool) -> Steps[Message]:
        if self._is_standard or not frame.lstrip().startswith(b"{"):
            return self._replace_non_object((yield from salvage(frame, error, _read_message)))
        refuse = Malformed if self.dialect is None else self.dialect.refuse
        return (
            yield from salvage(
                frame, error, lambda value: self._read_object(value, 0, is_stream=is_stream)[0], refuse
            )
        )

    def _read_object(self, value: dict[str, Any], weight: int, *, is_stream: bool) -> list[Message]:
        """Return the messages in `value`, which is in the peer's dialect."""
        # The first object determines the dialect for the rest of the connection.
        if self.dialect is None and not self._is_standard:
            self.dialect = find_dialect(value, is_stream=is_stream)
            self._is_standard = self.dialect is None
        if self.dialect is None:
            return [_read_message(value, weight)]
        messages = self.dialect.read(value)
        return [replace(item, weight=weight) if isinstance(item, Request) else item for item in messages]

    def _replace_non_object(self, message: Message) -> Message:
        """Return the message for a JSON text that is not an object, or was not parsed. `message` is the one for a
        peer that follows the specification; a peer with a dialect gets an error in the form of its dialect."""
        if self.dialect is None:
            return message
        if isinstance(message, Malformed):
            return message if message.silent else self.dialect.refuse(message.failure)
        return self.dialect.refuse(failure(None, InvalidRequest("a message must be a JSON object")))

    def _make_frames(self, start: bytes) -> "LineBuffer | ContentLengthBuffer | None":
        """Return the buffer for a stream that begins with `start`; None if `start` is too short for a decision."""
        # A server accepts headers only if it accepts dialects; a client accepts the framing that its server uses.
        if self._is_standard and not self._is_client:
            return LineBuffer(self._max_message)
        # Header names are case-insensitive (RFC 9110, section 5.1).
        name = start[:_MAX_NAME].lower()
        if name.startswith(_HEADERS):
            from .content_length import ContentLengthBuffer

            if not self._is_client:
                self._has_headers, self._line_end = True, b""
            return ContentLengthBuffer(self._max_message)
        if any(header.startswith(name) for header in _HEADERS):
            return None
        return LineBuffer(self._max_message)

    def _refuse_dropped(self, frame: "Oversized | Misframed") -> Malformed:
        error: RpcError
        if isinstance(frame, Oversized):
            error = InvalidRequest(f"a message may have at most {frame.limit:,} bytes")
        else:
            error = ParseError(frame.reason)
        if isinstance(frame, Oversized) and frame.answered_id is not None:
            return Malformed(failure(frame.answered_id, error), silent=True)
        return Malformed(failure(None if self._is_client else frame.id, error), self._is_client)

    def _with_header(self, body: bytes) -> bytes:
        return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def _refuse(text: bytes, error: RpcError) -> Malformed:
    """Return `error` as the answer to a text that was not parsed, with the id of the request if the start or the end
    of the text shows one. If the text is an answer itself, the error is not sent."""
    head, tail = text[:EDGE_BYTES], text[-EDGE_BYTES:]
    answered = read_answer_id(head, tail)
    if answered is not None:
        return Malformed(failure(answered, error), silent=True)
    return Malformed(failure(read_request_id(head, tail), error))


def decode(data: bytes | bytearray | memoryview) -> Message:
    """Return the message in `data`, one JSON text of a peer that follows the specification. Never raises because of
    the content."""
    try:
        value = from_json(bytes(data), allow_inf_nan=False)
    except ValueError as error:
        return complete(salvage(bytes(data), _parse_error(bytes(data), error), _read_message))
    return complete(_batch_steps(value, 0)) if isinstance(value, list) else _read_message(value)


def _parse_error(text: bytes, error: ValueError) -> ParseError:
    # A line that consists of one bracket is probably the first of JSON that is written over several lines.
    hint = "; in a stream, a message must be one line" if text.strip() in (b"{", b"[") else ""
    return ParseError(f"not valid JSON: {error}{hint}")


def _batch_steps(values: list[Any], weight: int) -> Steps[Message]:
    """Return the batch of these values, which take `weight` bytes of memory together. The messages of a small batch
    are assumed to be equally heavy. Those of a large batch are weighed, because one of them may have most of its
    weight."""
    if not values:
        return Malformed(failure(None, InvalidRequest("an empty batch is not a request")))
    messages: list[Message] = []
    weighed = 0
    for item in values:
        share = weight // len(values) if weight < HEAVY_BYTES else weigh_value(item)
        messages.append(_read_message(item, share))
        weighed += share
        if weighed >= HEAVY_BYTES:
            yield
            weighed = 0
    return Batch(tuple(messages))


def _read_message(value: Any, weight: int = 0) -> Message:
    if not isinstance(value, dict):
        return Malformed(failure(None, InvalidRequest("a message must be a JSON object")))
    valid_id = value.get("id")
    # `isinstance(valid_id, int)` would accept True, which is not an id (JSON-RPC 2.0, section 4).
    if not isinstance(valid_id, str) and type(valid_id) is not int:
        valid_id = None
    if value.get("jsonrpc") != "2.0":
        return Malformed(failure(valid_id, InvalidRequest('"jsonrpc" must be "2.0"')), is_call="method" in value)
    if "method" not in value:
        return _read_answer(value, valid_id)
    method, params = value["method"], value.get("params", {})
    if isinstance(method, str) and isinstance(params, dict):
        if valid_id is not None:
            return Request(valid_id, method, params, weight=weight)
        if "id" not in value:
            return Notification(method, params)
    if params is None:
        # Clients in languages without optional fields send null instead of omitting it.
        return _read_message({**value, "params": {}}, weight)
    wants_answer = "id" in value
    if wants_answer and valid_id is None:
        return Malformed(failure(None, InvalidRequest('"id" must be a string or an integer')), is_call=True)
    refusal: RpcError = InvalidParams('"params" must be an object')
    if not isinstance(value["method"], str):
        refusal = InvalidRequest('"method" must be a string')
    # An invalid notification is not answered either (JSON-RPC 2.0, section 4.1).
    return Malformed(failure(valid_id, refusal), not wants_answer, is_call=True)


def _read_answer(value: dict[str, Any], valid_id: RequestId | None) -> Message:
    if "result" not in value and "error" not in value:
        return Malformed(
            failure(valid_id, InvalidRequest('a message must have a "method", a "result" or an "error"'))
        )
    result, error = value.get("result"), value.get("error")
    if error is None and valid_id is not None and isinstance(result, dict):
        return Response(valid_id, result)
    if result is None and isinstance(error, dict):
        code, message = error.get("code"), error.get("message")
        # `isinstance` would accept True as an int.
        code = code if type(code) is int else InternalError.code
        return Failure(valid_id, code, message if isinstance(message, str) else _NO_MESSAGE, error.get("data"))
    # Silent, since the sender of an answer does not wait for one.
    return Malformed(
        failure(valid_id, InvalidRequest("an answer must have an id and either a result or an error")), True
    )


encode = Codec(line_end=b"").encode
"""Encodes a message as a body, without framing or dialect."""


_BUG_ERRORS = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError),
    *(MemoryError, OSError, RuntimeError, TypeError, ValueError),
)
"""The exceptions that a bug in this package raises, for example when a result has an unexpected form."""


def json_value(message: Message) -> Any:
    """Return the JSON value that `encode` writes for `message`; for `Malformed`, its error."""
    match message:
        case Response():
            return {"jsonrpc": "2.0", "id": message.id, "result": message.result}
        case Request():
            return {"jsonrpc": "2.0", "id": message.id, "method": message.method, "params": message.params}
        case Notification():
            return {"jsonrpc": "2.0", "method": message.method, "params": message.params}
        case Failure():
            return _failure_value(message)
        case Batch():
            return [json_value(item) for item in message.messages]
        case Malformed():
            return _failure_value(message.failure)


def _failure_value(message: Failure) -> dict[str, Any]:
    answered = {} if message.id is None else {"id": message.id}
    return {"jsonrpc": "2.0", **answered, "error": error_object(message)}
