"""The protocol's rules for HTTP requests: headers, media types, statuses, and the era of a request.

They are functions without I/O. A check returns None if the request passes, otherwise the `Refusal` to send. A refusal
never repeats data of the request. Hosts and origins are checked in `hosts.py`, the headers in which a stateless
request repeats its body in `routing_headers.py`.

(2025-11-25 and 2026-07-28, Transports, Streamable HTTP; RFC 9110.)
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from ...errors import InsufficientScope, InvalidRequest, LimitExceeded, RpcError, Unavailable
from ..records import record
from ..session.batches import MAX_BATCH
from ..session.envelope import claims_envelope
from ..versions import HANDSHAKE_VERSIONS, Version, find_version
from ..wire.jsonrpc import Batch, Failure, Malformed, Message, Notification, Request, RequestId, Response, failure
from .protected import ProtectedResource, challenge

JSON = "application/json"
EVENT_STREAM = "text/event-stream"
SESSION_ID = "mcp-session-id"
LAST_EVENT_ID = "last-event-id"
VERSION_HEADER = "mcp-protocol-version"

REPEATED = "a header that may occur only once occurs more than once"
_SINGLE_HTTP_HEADERS = frozenset({"host", "origin", "authorization", "x-api-key", "content-type", "content-length"})
"""HTTP headers that may occur only once. With two values, a proxy and the server might see different requests."""
_SINGLE = _SINGLE_HTTP_HEADERS | {SESSION_ID, VERSION_HEADER, "mcp-method", "mcp-name", LAST_EVENT_ID}
_SINGLE_PREFIX = "mcp-param-"
_GZIP = ("gzip", "x-gzip")

_STATUSES = {-32700: 400, -32600: 400, -32601: 404, -32602: 400, -32020: 400, -32021: 400, -32022: 400}
"""The statuses that 2026-07-28 prescribes for error codes. With any other code, such as -32603 or one of the server's
author, the request counts as served, and the status is 200."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An HTTP response with an error, sent instead of serving the request."""

    status: int
    failure: Failure
    headers: tuple[tuple[str, str], ...] = ()


def refuse(status: int, reason: str, **headers: str) -> Refusal:
    """Return a refusal that gives `reason`, with these headers, e.g. `Allow="POST"`; `_` in a name becomes `-`."""
    pairs = tuple((name.replace("_", "-").lower(), value) for name, value in headers.items())
    return Refusal(status, failure(None, InvalidRequest(reason)), pairs)


@record
class Denial:
    """Why a sender is not authenticated, and how to answer."""

    reason: str
    challenge: str
    """The value of the WWW-Authenticate header (RFC 9110, section 11.6.1); empty for no such header."""
    status: int = 401
    headers: tuple[tuple[str, str], ...] = ()
    """Further headers of the response."""

    def refusal(self) -> Refusal:
        """Return the response to the sender."""
        challenge = (("www-authenticate", self.challenge),) if self.challenge else ()
        return Refusal(self.status, failure(None, InvalidRequest(self.reason)), (*challenge, *self.headers))


def insufficient_scope(answer: Failure, resource: ProtectedResource | None) -> tuple[tuple[str, str], ...] | None:
    """Return the headers of the response with status 403 if `answer` is the error that a token lacks scopes; None for
    any other error (2026-07-28, Authorization, Scope Challenge Handling). `resource` is None if only the operator
    issues tokens, so there is no resource in the sense of OAuth."""
    if answer.kind != InsufficientScope.kind:
        return None
    scopes: list[str] = answer.data["scopes"]
    if resource is None:
        challenge_ = challenge(error=answer.kind, error_description=answer.message, scope=" ".join(scopes))
    else:
        challenge_ = resource.challenge(answer.kind, answer.message, scope=scopes)
    return (("www-authenticate", challenge_),)


_RETRY_STATUSES = {LimitExceeded.kind: 429, Unavailable.kind: 503}
"""The statuses of errors after which a client may send the request again, by the kind of error."""
KINDS_WITH_STATUS = frozenset({InsufficientScope.kind, *_RETRY_STATUSES})
"""The kinds of errors that have a status of their own, in every version."""


def find_kind_status(
    answer: Failure, resource: ProtectedResource | None
) -> tuple[int, tuple[tuple[str, str], ...]] | None:
    """Return the status of `answer`, and headers, if its kind of error has a status of its own; otherwise None."""
    # The kind decides, because other errors have the same codes. A proxy decides by the status whether to retry.
    if answer.kind in _RETRY_STATUSES:
        return _RETRY_STATUSES[answer.kind], _retry_after(answer)
    challenge = insufficient_scope(answer, resource)
    return None if challenge is None else (403, challenge)


def limit_exceeded(error: LimitExceeded) -> Refusal:
    """Return the refusal with status 429 for a client that exceeds a limit (RFC 6585, section 4)."""
    answer = failure(None, error)
    return Refusal(429, answer, _retry_after(answer))


def _retry_after(answer: Failure) -> tuple[tuple[str, str], ...]:
    return (("retry-after", str(answer.data["retryAfter"])),)


# Headers


_NO_NAMES: frozenset[str] = frozenset()


@record
class Headers:
    """The headers of a request, by name in lower case. `repeated` is the names of headers that may occur only once,
    but occurred several times."""

    values: Mapping[str, str]
    repeated: frozenset[str] = _NO_NAMES

    def get(self, name: str) -> str | None:
        """Return the value of a header; several values are joined with commas. None if the header is missing."""
        return self.values.get(name)


Claim = Callable[[str, float], Awaitable[bool]]
"""A function that claims a name on all replicas for a number of seconds. It returns False if the name was claimed
before, and raises OSError if that can't be determined."""


@record
class HttpRequest:
    """An HTTP request without its body, which has not been read yet."""

    method: str
    path: str
    headers: Headers
    query: bytes = b""
    address: str = ""
    """The IP address of the sender."""
    resource: ProtectedResource | None = None
    """The resource for which the token of the request must be issued; None if only the operator issues tokens."""
    claim: Claim | None = None
    """Claims names among the replicas of the requested server; None if the request is not for a server."""


def read_headers(raw: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return the headers. White space around a value, which some web servers pass on, is removed (RFC 9110, section
    5.5)."""
    # Latin-1 has a character for each byte, so decoding never fails (RFC 9110, section 5.5).
    headers = [(_decode_name(name), value.decode("latin-1").strip(" \t")) for name, value in raw]
    values = dict(headers)
    if len(values) == len(headers):
        return Headers(values)
    values, repeated = {}, _NO_NAMES
    for name, value in headers:
        if name not in values:
            values[name] = value
        elif name in _SINGLE or name.startswith(_SINGLE_PREFIX):
            repeated |= {name}
        else:
            values[name] += f", {value}"
    return Headers(values, repeated)


@lru_cache(256)
def _decode_name(raw: bytes) -> str:
    return raw.decode("latin-1").lower()


def check_single(headers: Headers, *, all_of_them: bool) -> Refusal | None:
    """Return a refusal with status 400 if a header is repeated that may occur only once: an HTTP header or, with
    `all_of_them`, also one of MCP."""
    # A proxy may use the first of two values, and the server the last. The proxy would then check another request
    # than the one that is served.
    is_ambiguous = headers.repeated and (all_of_them or headers.repeated & _SINGLE_HTTP_HEADERS)
    return refuse(400, REPEATED) if is_ambiguous else None


# Media types. Results are cached, because a client sends the same headers with every request.


@lru_cache(64)
def accepts(accept: str | None, media_type: str) -> bool:
    """Return True if an `Accept` header accepts `media_type`, whose most specific range in the header decides."""
    return _find_quality(accept, {media_type: 2, f"{media_type.partition('/')[0]}/*": 1, "*/*": 0}) > 0


@lru_cache(64)
def accepts_gzip(accept_encoding: str | None) -> bool:
    """Return True if an `Accept-Encoding` header accepts gzip (RFC 9110, section 12.5.3)."""
    return _find_quality(accept_encoding, {"gzip": 1, "x-gzip": 1, "*": 0}) > 0


def _find_quality(header: str | None, ranks: Mapping[str, int]) -> float:
    """Return the quality of the most specific name in the header, which is the one with the highest rank; 0 if the
    header has none of the names in `ranks`."""
    highest_rank, quality = -1, 0.0
    for part in (header or "").lower().split(","):
        name, *parameters = (piece.strip(" \t") for piece in part.split(";"))
        # The most specific range decides, not the one with the best quality: `*/*, text/event-stream;q=0` does not
        # accept a stream (RFC 9110, section 12.5.1).
        if ranks.get(name, -1) > highest_rank:
            highest_rank, quality = ranks[name], _read_quality(parameters)
    return quality


def _read_quality(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            # `float` alone would accept "inf", "1_0" and digits of other scripts (RFC 9110, section 12.4.2, does
            # not).
            return float(value) if re.fullmatch(r"[01](\.[0-9]{0,3})?", value.strip()) else 0.0
    return 1.0


_NO_STREAM = f"the Accept header must list {EVENT_STREAM}"


def check_accept(headers: Headers) -> Refusal | None:
    """Return a refusal with status 406 if the client does not accept an event stream."""
    return None if EVENT_STREAM in accepted_types(headers) else refuse(406, _NO_STREAM)


def accepted_types(headers: Headers) -> tuple[str, ...]:
    """Return which of JSON and an event stream the client accepts; without an `Accept` header, both (RFC 9110,
    section 12.5.1)."""
    return _accepted_types(headers.get("accept") or "*/*")


@lru_cache(64)
def _accepted_types(accept: str) -> tuple[str, ...]:
    return tuple(media_type for media_type in (JSON, EVENT_STREAM) if accepts(accept, media_type))


def check_post(headers: Headers) -> Refusal | None:
    """Return the refusal that the headers of a POST require, or None."""
    # The specification demands that clients list both, but many programs list one of them or send no such header.
    if not accepted_types(headers):
        return refuse(406, f"the Accept header must list {JSON} and {EVENT_STREAM}")
    return check_content(headers)


def may_be_dialect(headers: Headers) -> bool:
    """Return True if a POST may come from a client with a dialect (`wire/dialects`): it has neither of the headers
    in which standard clients send their version and session."""
    return headers.get(VERSION_HEADER) is None and headers.get(SESSION_ID) is None


def dialect_form(headers: Headers) -> str | None:
    """Return the media type of the answer to a request in a dialect: JSON, unless the client explicitly accepts a
    stream. None if it accepts both, so that the server can choose (document 000, section 4.2)."""
    accept = headers.get("accept") or ""
    if EVENT_STREAM not in accept.lower() or not accepts(accept, EVENT_STREAM):
        return JSON
    return None if accepts(accept, JSON) else EVENT_STREAM


def check_content(headers: Headers) -> Refusal | None:
    """Return a refusal with status 415 if the body is not JSON, or is compressed in another way than with gzip."""
    if not _is_json(headers.get("content-type")):
        return refuse(415, f"the Content-Type must be {JSON}")
    coding = headers.get("content-encoding")
    if coding is not None and coding.lower() not in ("", "identity", *_GZIP):
        # The response has to name the accepted coding (RFC 9110, section 15.5.16).
        return refuse(415, "a body may be compressed only with gzip", Accept_Encoding="gzip")
    return None


def is_gzip(headers: Headers) -> bool:
    """Return True if the body is gzipped (RFC 9110, section 8.4.1.3)."""
    coding = headers.get("content-encoding")
    return coding is not None and coding.lower() in _GZIP


@lru_cache(64)
def _is_json(content_type: str | None) -> bool:
    return (content_type or "").partition(";")[0].strip(" \t").lower() == JSON


def is_upgrade(headers: Headers) -> bool:
    """Return True if a request asks for an upgrade to WebSocket (RFC 6455, section 4.2.1)."""
    if (headers.get("upgrade") or "").lower() != "websocket":
        return False
    options = (headers.get("connection") or "").lower().split(",")
    return "upgrade" in (option.strip(" \t") for option in options)


# Eras, versions, sessions


def is_stateless(headers: Headers, message: Message | None = None) -> bool:
    """Return True if a request belongs to the stateless era, because its header or its body contains a version of
    that era."""
    # A version in the body is enough. If a proxy has dropped the header, the client gets an error about the missing
    # header (-32020), not one about a session, which it does not know.
    if isinstance(message, (Request, Notification)) and claims_envelope(message.params):
        return True
    version = find_version(headers.get(VERSION_HEADER))
    return version is not None and version.stateless


def check_version_header(headers: Headers, version: Version | None) -> Refusal | None:
    """Return a refusal with status 400 if the version header contains an unknown or stateless version, or another
    than the session's `version`. The header may be missing."""
    header_value = headers.get(VERSION_HEADER)
    if header_value is None:
        return None
    sent_version = find_version(header_value)
    if sent_version is None or sent_version.stateless:
        supported = [supported_version.date for supported_version in HANDSHAKE_VERSIONS]
        error = InvalidRequest("unsupported MCP-Protocol-Version", data={"supported": supported})
        return Refusal(400, failure(None, error))
    # The specification does not say what to do if the header contains another supported version. It is refused, since
    # the answers would have the form of the session's version, which this client does not expect.
    if version is not None and sent_version is not version:
        return refuse(400, "MCP-Protocol-Version is not the version that this session negotiated")
    return None


def is_session_id(text: str) -> bool:
    """Return True if `text` has the form of a session id: visible ASCII."""
    # Other characters are not allowed (2025-11-25, Session Management). The specification sets no maximum length;
    # this one limits the cost of a lookup.
    return re.fullmatch(r"[\x21-\x7e]{1,256}", text) is not None


def read_session_id(headers: Headers) -> str | Refusal:
    """Return the session id of a request; a refusal with status 400 if there is none, or if a header is repeated that
    may occur only once."""
    refusal = check_single(headers, all_of_them=True)
    if refusal is not None:
        return refusal
    header_value = headers.get(SESSION_ID)
    if header_value is None:
        return refuse(400, "the Mcp-Session-Id header is required: send initialize first; its response has the id")
    return header_value


def read_event_id(text: str) -> tuple[str, int] | None:
    """Return the name of the stream and the number of the message in an event id; None if `text` is not one of our
    event ids."""
    # Numbers of up to fifteen digits are exact in every language; this server never issues longer ones.
    match = re.fullmatch(r"([0-9a-f]{1,64})_([0-9]{1,15})", text, re.ASCII)
    return None if match is None else (match[1], int(match[2]))


def check_handshake_body(message: Message, version: Version | None) -> Refusal | None:
    """Return a refusal with status 400 for a body that must not reach a session of `version`: an invalid message, or
    a batch that the version does not allow or that is too large."""
    match message:
        case Malformed(answer):
            return Refusal(400, answer)
        case Batch(messages) if version is None or not version.batching:
            return refuse(400, "the body must be one message: this protocol version has no batches")
        case Batch(messages) if len(messages) > MAX_BATCH:
            return refuse(400, f"a batch may hold at most {MAX_BATCH} messages")
        # A batch without requests is answered with status 202 and no body, which can't contain an error. So an
        # invalid message in it is reported here.
        case Batch(messages) if not request_ids(message):
            faults = [malformed.failure for malformed in messages if isinstance(malformed, Malformed)]
            return Refusal(400, faults[0]) if faults else None
    return None


def check_session_message(headers: Headers, message: Message, version: Version | None) -> Refusal | None:
    """Return a refusal with status 400 for a message that a session of `version` can't accept, because of its version
    header or its body."""
    return check_version_header(headers, version) or check_handshake_body(message, version)


def request_ids(message: Message) -> tuple[RequestId, ...]:
    """Return the ids of the requests in `message`."""
    # Not a `match`: for each of its class patterns CPython creates the string `__match_args__` anew. Its attribute
    # cache keeps thousands of these strings, scattered among live objects, so that memory is never returned to the
    # system.
    if isinstance(message, Request):
        return (message.id,)
    if isinstance(message, Batch):
        return tuple(item.id for item in message.messages if isinstance(item, Request))
    return ()


def stateless_status(answer: Response | Failure | RpcError) -> int:
    """Return the HTTP status of the answer to a stateless request (2026-07-28, Streamable HTTP, Response Status)."""
    return 200 if isinstance(answer, Response) else _STATUSES.get(answer.code, 200)
