"""What becomes of a request that gets no answer, as the type of its error.

    OSError
    └── ConnectionError     no answer, or none that can be used: the server may have done what was asked, or not
        └── Unreached       the request did not come to the server: whatever it is, it may be made again
            └── SessionLost the server no longer knows the session, and did not do what was asked in it

Where the authorization that the server wants can't be had, the request ends in `AuthError`, of `shared.errors`. An
error that the server answers is `PeerError`, of `shared.errors`; where its `code` is an HTTP status, `data` may
have the seconds to wait: `{"retryAfter": 3}`. `TimeoutError` says that no answer came in time; the server was then
told to stop.
"""

from ..errors import AuthError, LoginRequired
from ..protocol.wire.jsonrpc import Fate


class Unreached(ConnectionError):
    """A request has not come to the server."""


class SessionLost(Unreached):
    """The server has forgotten the session of a request (HTTP 404: 2025-11-25, Transports, Session Management)."""


_KINDS: dict[Fate, type[OSError | AuthError]] = {
    "unknown": ConnectionError,
    "unreached": Unreached,
    "session over": SessionLost,
    "unauthorized": AuthError,
    "no login": LoginRequired,
}


def lost(reason: str, fate: Fate) -> OSError | AuthError:
    """The error of a request that had this fate."""
    return _KINDS[fate](reason)
