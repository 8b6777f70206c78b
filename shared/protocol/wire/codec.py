"""Converts between the bytes of one connection and its messages, in both directions.

A `Codec` stores the properties of the connection that the peer's first data determines. The first bytes determine the
framing: lines, or headers with `Content-Length`, which a server accepts if it accepts dialects. The first message
that is a JSON object determines the dialect, which converts between a parsed value and its messages, and between a
message and its bytes.

Decoding never raises because of the peer's input: invalid input becomes `Malformed`, which contains the answer to it.
Decisions where the specifications leave room:

* the parser is pydantic-core's: at most 200 levels of nesting, NaN and Infinity refused, integers of any
  size up to 4,300 digits, invalid UTF-8 and lone surrogates refused; a number beyond the range of a double, such
  as 1e999, reads as infinity, as in Python's own parser;
* a JSON text that it refuses is read again, leniently, and answered under its id: -32602 with the place in the
  params, -32600 with any other place, -32700 if no place is known. In a notification, which has no answer, U+FFFD
  replaces invalid text; an answer to a request that we sent becomes an error, so that nobody waits for it;
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
from .dialects import Dialect, client_dialect, find_dialect
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
    """The decoder and encoder of one connection. A byte stream is read with `feed`, piece by piece, and `end`, and
    written with `encode`. Input that is already delimited is read with `feed_body` if it is an item of a stream, and
    with `decode_body` if it is independent, like a POST. Each of them has a form in steps, for large input."""

    __slots__ = (
        "_frames",
        "_has_headers",
        "_is_client",
        "_is_cut",
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
        """A message of more than `max_message` bytes is dropped, and reading continues after it. A server reports it
        to its peer, under the id of the request if the start or the end of the message shows one; a client does not.
        A server refuses a message with too many values in the same way. Messages that are written as bodies have no
        `line_end`. A client frames its messages with `framing`, a server like its peer. With `dialects`, a peer may
        use a dialect or `Content-Length` framing instead of the standard format. `dialect` is the document that a
        client speaks. Raises ValueError if it is unknown."""
        self._max_message = max_message
        self._is_client = is_client
        self._has_headers = framing == "content-length"
        self._line_end = b"" if self._has_headers else line_end
        self._start = b""
        self._frames: LineBuffer | ContentLengthBuffer | None = None
        self._is_cut = False
        self._is_standard = not dialects and dialect is None
        self.dialect: Dialect | None = None if dialect is None else client_dialect(dialect)
        """The peer's dialect, once its first message has determined it; None for the specification."""

    def feed_steps(self, data: bytes) -> Steps[list[Message]]:
        """`feed` in steps."""
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
            except _BUGS:  # the fault occurs again below, where it is answered
                pass
        return complete(self._read_all(parts))

    def end(self) -> list[Message]:
        """End the stream, and return the message of a last line without a line ending."""
        frames = self._frames or LineBuffer(self._max_message)
        return complete(self._read_all([*frames.feed(self._start), *frames.end()]))

    def feed_body(self, body: bytes | bytearray) -> list[Message]:
        """Return the messages in the next item of a stream; each item is one JSON text."""
        return complete(self.feed_body_steps(bytes(body)))

    def feed_body_steps(self, body: bytes) -> Steps[list[Message]]:
        """`feed_body` in steps."""
        return self._read(body)

    def decode_body(self, body: bytes | bytearray) -> Message:
        """Return the message in `body`, which is independent of other messages."""
        return complete(self.decode_body_steps(bytes(body)))

    def decode_body_steps(self, body: bytes) -> Steps[Message]:
        """`decode_body` in steps."""
        if self._is_standard and len(body) <= MAX_LIGHT_BYTES:  # as most are
            return decode(body)
        return (yield from self._read_text(body, is_stream=False))[0]

    def encode(self, message: Message) -> bytes:
        """Return `message` as compact JSON in UTF-8, framed for a stream. `Malformed` is never sent. Empty if the
        dialect has no form for it."""
        value: Any
        if self.dialect is not None:
            try:
                value = self.dialect.write(message)
            except _BUGS:
                log.exception("a message could not be written in the dialect of document %s", self.dialect.name)
                value = None
                if isinstance(message, Response):
                    value = self.dialect.write(failure(message.id, InternalError("internal error")))
            if value is None:
                return b""
        elif not isinstance(message, Response):
            value = json_value(message)
        elif isinstance(message.result, Prepared):
            result = message.result.json
            # A list that is the same for all clients is already JSON; serializing it again would take most of the
            # time.
            data = b'{"jsonrpc":"2.0","id":%b,"result":%b}%b' % (json_of(message.id), result, self._line_end)
            return self._with_header(data) if self._has_headers else data
        else:
            value = {"jsonrpc": "2.0", "id": message.id, "result": message.result}
        try:
            data = to_json(value, inf_nan_mode="null") + self._line_end
        except PydanticSerializationError:
            # An author's log message without a JSON form must not end the connection.
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
        """Return the messages in `frames`. The rest of a body is skipped if an error for the body was sent."""
        messages: list[Message] = []
        for frame in frames:
            # The peer sent a wrong length and has received an error for the truncated body. The rest is not a
            # message, and gets no second error.
            if not isinstance(frame, bytes | Oversized) and frame.is_rest and self._is_cut:
                continue
            read = yield from self._read(frame)
            self._is_cut = any(isinstance(item, Malformed) and item.failure.code == ParseError.code for item in read)
            messages += read
        return messages

    def _read(self, frame: "Frame") -> Steps[list[Message]]:
        """Return the messages in one JSON text of a stream. If a fault of ours prevents that, it is answered with an
        internal error, since its sender would wait forever."""
        try:
            return (yield from self._read_text(frame, is_stream=True))
        except _BUGS:
            log.exception("a message could not be read")
        text = frame if isinstance(frame, bytes) else b""
        return [self._replace_non_object(_refuse(text, InternalError("internal error")))]

    def _read_text(self, frame: "Frame", *, is_stream: bool) -> Steps[list[Message]]:
        """Return the messages in one JSON text, which may determine the peer's dialect. A server refuses a text with
        too many values."""
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
            # The cache of short strings doubles the time if all names of a large text are different.
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
        """Return the messages in `value`, in the peer's dialect."""
        # The first object determines the dialect, which a peer can't change later.
        if self.dialect is None and not self._is_standard:
            self.dialect = find_dialect(value, is_stream=is_stream)
            self._is_standard = self.dialect is None
        if self.dialect is None:
            return [_read_message(value, weight)]
        messages = self.dialect.read(value)
        return [replace(item, weight=weight) if isinstance(item, Request) else item for item in messages]

    def _replace_non_object(self, message: Message) -> Message:
        """Return the replacement for text that is not a JSON object, which the specification would read as
        `message`."""
        if self.dialect is None:
            return message
        if isinstance(message, Malformed):
            return message if message.silent else self.dialect.refuse(message.failure)
        return self.dialect.refuse(failure(None, InvalidRequest("a message must be a JSON object")))

    def _make_frames(self, start: bytes) -> "LineBuffer | ContentLengthBuffer | None":
        """Return the reader of a stream with this `start`; None if it is not decided yet."""
        # A server accepts headers only if it accepts dialects; a client accepts any framing of its server.
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
        error_answer: RpcError
        if isinstance(frame, Oversized):
            error_answer = InvalidRequest(f"a message may have at most {frame.limit:,} bytes")
        else:
            error_answer = ParseError(frame.reason)
        if isinstance(frame, Oversized) and frame.answered is not None:
            return Malformed(failure(frame.answered, error_answer), silent=True)
        return Malformed(failure(None if self._is_client else frame.id, error_answer), self._is_client)

    def _with_header(self, body: bytes) -> bytes:
        return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def _refuse(text: bytes, error: RpcError) -> Malformed:
    """Return `error` as the answer to a text that was not parsed, under its id if its start or end shows one."""
    head, tail = text[:EDGE_BYTES], text[-EDGE_BYTES:]
    answered = read_answer_id(head, tail)
    if answered is not None:
        return Malformed(failure(answered, error), silent=True)
    return Malformed(failure(read_request_id(head, tail), error))


def decode(data: bytes | bytearray | memoryview) -> Message:
    """Return the message in `data`, one JSON text. Never raises because of its content."""
    try:
        value = from_json(bytes(data), allow_inf_nan=False)
    except ValueError as error:
        return complete(salvage(bytes(data), _parse_error(bytes(data), error), _read_message))
    return complete(_batch_steps(value, 0)) if isinstance(value, list) else _read_message(value)


def _parse_error(text: bytes, error: ValueError) -> ParseError:
    # A lone bracket is the first line of indented JSON.
    hint = "; in a stream, a message must be one line" if text.strip() in (b"{", b"[") else ""
    return ParseError(f"not valid JSON: {error}{hint}")


def _batch_steps(values: list[Any], weight: int) -> Steps[Message]:
    """Return the batch of these values, whose JSON takes `weight` bytes of memory. The messages of a heavy one are
    weighed: one of them may be nearly as heavy."""
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
    known_id = value.get("id")
    # Not `isinstance(known_id, int)`, since True is an int in Python, but not an id (JSON-RPC 2.0, section 4).
    if not isinstance(known_id, str) and type(known_id) is not int:
        known_id = None
    if value.get("jsonrpc") != "2.0":
        return Malformed(failure(known_id, InvalidRequest('"jsonrpc" must be "2.0"')), is_call="method" in value)
    if "method" not in value:
        return _read_answer(value, known_id)
    method, params = value["method"], value.get("params", {})
    if isinstance(method, str) and isinstance(params, dict):
        if known_id is not None:
            return Request(known_id, method, params, weight=weight)
        if "id" not in value:
            return Notification(method, params)
    if params is None:
        # Clients in languages without optional fields send null instead of omitting it.
        return _read_message({**value, "params": {}}, weight)
    wants_answer = "id" in value
    if wants_answer and known_id is None:
        return Malformed(failure(None, InvalidRequest('"id" must be a string or an integer')), is_call=True)
    refusal: RpcError = InvalidParams('"params" must be an object')
    if not isinstance(value["method"], str):
        refusal = InvalidRequest('"method" must be a string')
    # A notification gets no error either, however wrong it is (JSON-RPC 2.0, section 4.1).
    return Malformed(failure(known_id, refusal), not wants_answer, is_call=True)


def _read_answer(value: dict[str, Any], known_id: RequestId | None) -> Message:
    if "result" not in value and "error" not in value:
        return Malformed(
            failure(known_id, InvalidRequest('a message must have a "method", a "result" or an "error"'))
        )
    result, error = value.get("result"), value.get("error")
    if error is None and known_id is not None and isinstance(result, dict):
        return Response(known_id, result)
    if result is None and isinstance(error, dict):
        code, message = error.get("code"), error.get("message")
        # True is an int to `isinstance`, but not an error code.
        code = code if type(code) is int else InternalError.code
        return Failure(known_id, code, message if isinstance(message, str) else _NO_MESSAGE, error.get("data"))
    # The sender of an invalid answer does not wait for an answer.
    return Malformed(
        failure(known_id, InvalidRequest("an answer must have an id and either a result or an error")), True
    )


encode = Codec(line_end=b"").encode
"""Encodes a message as a body for any receiver."""


_BUGS = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError),
    *(MemoryError, OSError, RuntimeError, TypeError, ValueError),
)
"""The errors that a fault of our own raises, such as for a result of an unexpected form."""


def json_value(message: Message) -> Any:
    """Return the JSON value that `encode` writes for `message`. For `Malformed`, it is the answer."""
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
