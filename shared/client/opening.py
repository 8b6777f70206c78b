"""Opens a session: which era the server lives in, and what it says of itself (2026-07-28, Versioning).

With "auto" the stateless era is tried first. Whatever an old server answers, also nothing, leads to the
handshake; what only a stateless server can answer does not.
"""

from ..protocol.session.client import Era
from ..protocol.session.client_events import InputWanted
from ..protocol.wire.jsonrpc import Failure, Response
from .connection import Connection, result_of
from .options import ClientOptions

__all__ = ["OPENING_SECONDS", "open_session"]

OPENING_SECONDS = 60.0
"""How long a server may take to start and answer, where nothing else can be tried."""
_NOTHING_SHARED = "the server and this client have no protocol version in common"


async def open_session(connection: Connection, options: ClientOptions) -> None:
    """Opens the session of `connection` as `options.mode` says.

    Raises PeerError when the server refuses, TimeoutError when it gives no answer, and ConnectionError when it is
    gone, answers what can't be used, or shares no version.
    """
    session = connection.session
    if session.stateless and await _discover(connection, options):
        return
    with connection.sent(session.initialize()) as waiter:
        answer = await connection.answer(waiter, OPENING_SECONDS)
    if isinstance(answer, InputWanted) or not session.initialized(result_of(answer)):
        raise ConnectionError(_NOTHING_SHARED)
    connection.flush()
    if options.log_level is not None and session.server is not None and session.server.can("logging"):
        await connection.call("logging/setLevel", {"level": options.log_level}, seconds=OPENING_SECONDS)


async def _discover(connection: Connection, options: ClientOptions) -> bool:
    """Whether the session is open now; False where a handshake is to be tried."""
    may_shake_hands = options.mode == "auto"
    session = connection.session
    answer: Response | Failure | InputWanted | None = None
    with connection.sent(session.discover()) as waiter:
        try:
            answer = await connection.answer(waiter, options.probe_seconds if may_shake_hands else OPENING_SECONDS)
        except TimeoutError:
            if not may_shake_hands:
                raise
    era = session.discovered(answer if isinstance(answer, Response | Failure) else None)
    if era is Era.NONE or (era is Era.HANDSHAKE and not may_shake_hands):
        if isinstance(answer, Failure):
            result_of(answer)
        raise ConnectionError(_NOTHING_SHARED)
    return era is Era.STATELESS
