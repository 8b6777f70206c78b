"""The protocol's rules for HTTP, as plain functions: headers, media types, statuses, eras.

Nothing here reads a socket. A check returns None on success, otherwise the `Refusal` with which to answer. Refusals
never repeat the caller's data. The tables in this module map errors to statuses. Hosts and origins are in `hosts`;
the headers with which a stateless request repeats its body, in `routing_headers`.

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
_GUARDED = frozenset({"host", "origin", "authorization", "x-api-key", "content-type", "content-length"})
"""Headers whose repetition could make two readers see two different requests."""
_SINGLE = _GUARDED | {SESSION_ID, VERSION_HEADER, "mcp-method", "mcp-name", LAST_EVENT_ID}
_SINGLE_PREFIX = "mcp-param-"
_GZIP = ("gzip", "x-gzip")

_STATUSES = {-32700: 400, -32600: 400, -32601: 404, -32602: 400, -32020: 400, -32021: 400, -32022: 400}
"""2026-07-28 prescribes these. An error of the handler itself (-32603, or a server's own code) means that the request
was served, with status 200."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A response from the transport itself."""

    status: int
    failure: Failure
    headers: tuple[tuple[str, str], ...] = ()


def refuse(status: int, reason: str, **headers: str) -> Refusal:
    """Return a refusal for `reason`; `Allow="POST"` and the like become headers, with `-` instead of `_`."""
    sent = tuple((name.replace("_", "-").lower(), value) for name, value in headers.items())
    return Refusal(status, failure(None, InvalidRequest(reason)), sent)


@record
class Denial:
    """The reason that a sender is not authenticated."""

    reason: str
    challenge: str
    """The value of the WWW-Authenticate header (RFC 9110, section 11.6.1); empty for none."""
    status: int = 401
    headers: tuple[tuple[str, str], ...] = ()
    """Further headers of the answer."""

    def refusal(self) -> Refusal:
        """Return the answer to the sender."""
        challenge = (("www-authenticate", self.challenge),) if self.challenge else ()
        return Refusal(self.status, failure(None, InvalidRequest(self.reason)), (*challenge, *self.headers))


def insufficient_scope(answer: Failure, resource: ProtectedResource | None) -> tuple[tuple[str, str], ...] | None:
    """Return the headers of the 403 for `answer` if a token lacks scopes for `resource` (2026-07-28, Authorization,
    Scope Challenge Handling); None if it is another error. If only the operator issues tokens, there is no resource
    in the sense of OAuth."""
    if answer.kind != InsufficientScope.kind:
        return None
    scopes: list[str] = answer.data["scopes"]
    if resource is None:
        challenge_ = challenge(error=answer.kind, error_description=answer.message, scope=" ".join(scopes))
    else:
        challenge_ = resource.challenge(answer.kind, answer.message, scope=scopes)
    return (("www-authenticate", challenge_),)


_RETRY_STATUSES = {LimitExceeded.kind: 429, Unavailable.kind: 503}
"""The statuses of errors after which a request may be repeated, by the kind of the error."""
REFUSING = frozenset({InsufficientScope.kind, *_RETRY_STATUSES})
"""The kinds of errors that have their own status, in every version."""


def find_error_status(
    answer: Failure, resource: ProtectedResource | None
) -> tuple[int, tuple[tuple[str, str], ...]] | None:
    """Return the status and the headers of `answer` over HTTP, if its kind of error has its own."""
    # The kind decides, since each version has its own codes for these errors. Proxies decide on retries by status.
    if answer.kind in _RETRY_STATUSES:
        return _RETRY_STATUSES[answer.kind], _retry_after(answer)
    challenge = insufficient_scope(answer, resource)
    return None if challenge is None else (403, challenge)


def limit_exceeded(error: LimitExceeded) -> Refusal:
    """Return the refusal for a client that exceeds its limits (RFC 6585, section 4)."""
    answer = failure(None, error)
    return Refusal(429, answer, _retry_after(answer))


def _retry_after(answer: Failure) -> tuple[tuple[str, str], ...]:
    return (("retry-after", str(answer.data["retryAfter"])),)


# Headers


_NO_NAMES: frozenset[str] = frozenset()


@record
class Headers:
    """A request's headers by lowercase name. `repeated` contains the headers that occur more than once although only
    one is allowed."""

    values: Mapping[str, str]
    repeated: frozenset[str] = _NO_NAMES

    def get(self, name: str) -> str | None:
        """Return the value of a header, several joined by commas; None if it is absent."""
        return self.values.get(name)


Claim = Callable[[str, float], Awaitable[bool]]
"""Claims a name on all replicas for the given number of seconds. Returns False if the name was claimed before. Raises
OSError if that is unknown."""


@record
class HttpRequest:
    """A request before its body is read."""

    method: str
    path: str
    headers: Headers
    query: bytes = b""
    address: str = ""
    """The address of the connection's peer."""
    resource: ProtectedResource | None = None
    """The resource for which a token must be issued; None if only the operator issues tokens."""
    claim: Claim | None = None
    """The claims of the requested server, which may have replicas; None if the request addresses no server."""


def read_headers(raw: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return the headers as sent, without white space around values, which some web servers pass on (RFC 9110,
    section 5.5)."""
    values: dict[str, str] = {}
    repeated = _NO_NAMES
    for raw_name, raw_value in raw:
        # Latin-1 has a character for each byte, so no header can fail here (RFC 9110, section 5.5).
        name, value = _decode_name(raw_name), raw_value.decode("latin-1").strip(" \t")
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
    """Return a 400 for a repeated HTTP header; with `all_of_them`, for a repeated MCP header, too."""
    # A proxy may use the first of two values and a server the last, so the proxy would check a request other than the
    # one served.
    is_ambiguous = headers.repeated and (all_of_them or headers.repeated & _GUARDED)
    return refuse(400, REPEATED) if is_ambiguous else None


# Media types. A client sends the same few headers with every request, so the results are cached.


@lru_cache(64)
def accepts(accept: str | None, media_type: str) -> bool:
    """Return True if an `Accept` header accepts `media_type`: the most specific range that matches decides."""
    return _best_quality(accept, {media_type: 2, f"{media_type.partition('/')[0]}/*": 1, "*/*": 0}) > 0


@lru_cache(64)
def accepts_gzip(accept_encoding: str | None) -> bool:
    """Return True if an `Accept-Encoding` header accepts gzip (RFC 9110, section 12.5.3)."""
    return _best_quality(accept_encoding, {"gzip": 1, "x-gzip": 1, "*": 0}) > 0


def _best_quality(header: str | None, ranks: Mapping[str, int]) -> float:
    best, quality = -1, 0.0
    for part in (header or "").lower().split(","):
        name, *parameters = (piece.strip(" \t") for piece in part.split(";"))
        # The most specific range decides, not the best quality: `*/*, text/event-stream;q=0` refuses a stream
        # (RFC 9110, section 12.5.1).
        if ranks.get(name, -1) > best:
            best, quality = ranks[name], _read_quality(parameters)
    return quality


def _read_quality(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            # `float` accepts "inf", "1_0" and digits of other scripts, which RFC 9110, section 12.4.2, does not.
            return float(value) if re.fullmatch(r"[01](\.[0-9]{0,3})?", value.strip()) else 0.0
    return 1.0


def check_accept(headers: Headers, *needed: str) -> Refusal | None:
    """Return a 406 unless the client accepts every one of `needed`."""
    accept = headers.get("accept")
    for media_type in needed:
        if not accepts(accept, media_type):
            return refuse(406, f"the Accept header must list {' and '.join(needed)}")
    return None


def may_be_dialect(headers: Headers, refusal: Refusal | None) -> bool:
    """Return True if a POST whose headers the specification answers with `refusal` may use a dialect: its body is
    JSON, it accepts one of the two forms of an answer (RFC 9110, section 12.5.1: also without a header), and it has
    neither of the headers in which standard clients send their version and session."""
    if headers.get(VERSION_HEADER) is not None or headers.get(SESSION_ID) is not None:
        return False
    if refusal is None or headers.get("expect") is not None:
        # A client that waits for permission to send its body is answered at once (RFC 9110, section 10.1.1).
        return refusal is None
    accept = headers.get("accept")
    is_answerable = accept is None or accepts(accept, JSON) or accepts(accept, EVENT_STREAM)
    return is_answerable and check_content(headers) is None


def check_post(headers: Headers, *, dialects: bool) -> tuple[Refusal | None, bool]:
    """Return the specification's answer to the headers of a POST, and True if the body may be in one of the
    `dialects`, whose requests are served anyway."""
    refusal = check_accept(headers, JSON, EVENT_STREAM) or check_content(headers)
    return refusal, dialects and may_be_dialect(headers, refusal)


def dialect_form(headers: Headers) -> str | None:
    """Return the only media type in which a dialect's request is answered: JSON, unless the client explicitly
    requests a stream. None if it requests both (document 000, 4.2)."""
    accept = headers.get("accept") or ""
    if EVENT_STREAM not in accept.lower() or not accepts(accept, EVENT_STREAM):
        return JSON
    return None if accepts(accept, JSON) else EVENT_STREAM


def check_content(headers: Headers) -> Refusal | None:
    """Return a 415 unless the body is JSON, plain or gzipped."""
    if not _is_json(headers.get("content-type")):
        return refuse(415, f"the Content-Type must be {JSON}")
    coding = headers.get("content-encoding")
    if coding is not None and coding.lower() not in ("", "identity", *_GZIP):
        # The answer names the accepted coding (RFC 9110, section 15.5.16).
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
    """Return True if a request belongs to the era without sessions, because its header or its body contains a version
    of that era.

    The version in the body is enough: a missing or older header is then reported as an error of this era.
    """
    # The body takes precedence over the header: a modern client behind a proxy that drops headers gets an error about
    # the missing header (-32020), not about a session.
    if isinstance(message, (Request, Notification)) and claims_envelope(message.params):
        return True
    version = find_version(headers.get(VERSION_HEADER))
    return version is not None and version.stateless


def check_version_header(headers: Headers, version: Version | None) -> Refusal | None:
    """Return a 400 if the version header contains a version without sessions, or one other than the session's
    `version`. Without the header the session's version applies."""
    sent = headers.get(VERSION_HEADER)
    if sent is None:
        return None
    named = find_version(sent)
    if named is None or named.stateless:
        supported = [supported_version.date for supported_version in HANDSHAKE_VERSIONS]
        error = InvalidRequest("unsupported MCP-Protocol-Version", data={"supported": supported})
        return Refusal(400, failure(None, error))
    # The specification does not say what to do with a supported version other than the session's. Serving it would
    # shape answers for a client other than the one that made the handshake.
    if version is not None and named is not version:
        return refuse(400, "MCP-Protocol-Version is not the version that this session negotiated")
    return None


def is_session_id(text: str) -> bool:
    """Return True if `text` has the form of a session id: visible ASCII."""
    # 2025-11-25, Session Management, allows no other characters. It sets no length; 256 limits the lookups.
    return re.fullmatch(r"[\x21-\x7e]{1,256}", text) is not None


def read_session_id(headers: Headers) -> str | Refusal:
    """Return the session id in a request; a 400 if there is none, or if an MCP header is repeated."""
    refusal = check_single(headers, all_of_them=True)
    if refusal is not None:
        return refusal
    sent = headers.get(SESSION_ID)
    if sent is None:
        return refuse(400, "the Mcp-Session-Id header is required: send initialize first; its response has the id")
    return sent


def read_event_id(text: str) -> tuple[str, int] | None:
    """Return the stream and the number in an event id; None if it is not an event id."""
    # Fifteen digits are an exact number in every language, and longer ids are never issued.
    match = re.fullmatch(r"([0-9a-f]{1,64})_([0-9]{1,15})", text, re.ASCII)
    return None if match is None else (match[1], int(match[2]))


def check_handshake_body(message: Message, version: Version | None) -> Refusal | None:
    """Return a 400 for a body that must not reach a session: an invalid message, or an array if the version has
    none."""
    match message:
        case Malformed(answer):
            return Refusal(400, answer)
        case Batch(messages) if version is None or not version.batching:
            return refuse(400, "the body must be one message: this protocol version has no batches")
        case Batch(messages) if len(messages) > MAX_BATCH:
            return refuse(400, f"a batch may hold at most {MAX_BATCH} messages")
        # Without a request in it, the answer would be a 202 without a body, which could not report an error.
        case Batch(messages) if not request_ids(message):
            faults = [malformed.failure for malformed in messages if isinstance(malformed, Malformed)]
            return Refusal(400, faults[0]) if faults else None
    return None


def check_session_message(headers: Headers, message: Message, version: Version | None) -> Refusal | None:
    """Return a 400 for a message that a session of `version` can't accept, because of its version header or its
    body."""
    return check_version_header(headers, version) or check_handshake_body(message, version)


def request_ids(message: Message) -> tuple[RequestId, ...]:
    """Return the ids of the requests in `message`, which answers will have."""
    # No `match`, because CPython creates the name `__match_args__` anew each time, and its attribute cache keeps
    # thousands of them scattered among live objects, so that memory is never returned to the system.
    if isinstance(message, Request):
        return (message.id,)
    if isinstance(message, Batch):
        return tuple(item.id for item in message.messages if isinstance(item, Request))
    return ()


def stateless_status(answer: Response | Failure | RpcError) -> int:
    """Return the HTTP status of an answer from 2026-07-28 on (Streamable HTTP, Response Status)."""
    return 200 if isinstance(answer, Response) else _STATUSES.get(answer.code, 200)
