"""The errors of requests without a usable answer.

    OSError
    └── ConnectionError     no usable answer: the server may have carried out the request, or not
        ├── InvalidAnswer   the server sent an answer that can't be read
        ├── EndedAtProbe    the server ended the connection when it was asked for its description
        └── Unreached       the request did not reach the server: any request may be repeated
            └── SessionLost the server no longer knows the session, and did not carry out the request

Two more errors are in `shared.errors`. `AuthError` is raised if the authorization that the server requires can't be
obtained, `PeerError` if the server answers with an error; if its `code` is an HTTP status, `data` may contain the
seconds to wait: `{"retryAfter": 3}`. `TimeoutError` means that no answer arrived in time; the request was then
cancelled on the server.
"""

from ..errors import AuthError, LoginRequired
from ..protocol.wire.jsonrpc import NoAnswerCause


class InvalidAnswer(ConnectionError):
    """Raised if the answer to a request has an invalid form."""


class EndedAtProbe(ConnectionError):
    """Raised if the server ended the connection when it received `server/discover`: it may need the handshake."""


class Unreached(ConnectionError):
    """Raised if a request has not reached the server."""


class SessionLost(Unreached):
    """Raised if the server has forgotten a session (HTTP 404: 2025-11-25, Transports, Session Management)."""


_ERRORS_BY_CAUSE: dict[NoAnswerCause, type[OSError | AuthError]] = {
    "unknown": ConnectionError,
    "invalid answer": InvalidAnswer,
    "unreached": Unreached,
    "session over": SessionLost,
    "unauthorized": AuthError,
    "no login": LoginRequired,
}


def error_of_cause(reason: str, cause: NoAnswerCause) -> OSError | AuthError:
    """Return the error for a request without a usable answer, with `reason` as its text."""
    return _ERRORS_BY_CAUSE[cause](reason)
