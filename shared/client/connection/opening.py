"""The opening of a session: the era of the server, and its description of itself (2026-07-28, Versioning).

In mode "auto" the stateless era is tried first. If there is no answer, or one that an older server could give, the
handshake follows.
"""

import logging
import re

import anyio

from ...errors import PeerError
from ...protocol.session.client import ClientSession, OpeningStep
from ...protocol.session.client_events import InputWanted
from ...protocol.wire.jsonrpc import Failure, Response
from ..errors import EndedAtProbe, Unreached
from ..options import ClientOptions
from .connection import Connection, result_of
from .retry import RetryPolicy

_log = logging.getLogger("shared.client.opening")

OPENING_SECONDS = 60.0
"""Seconds that a server has to start and to answer, if no other era can be tried."""
_MAX_NAMED_VERSIONS = 10
"""Maximum number of the server's versions in an error message."""


async def open_session(connection: Connection, options: ClientOptions) -> None:
    """Open the session of `connection` in `options.mode`. A busy server is asked again, up to 4 times in all.

    Raises PeerError if the server refuses, TimeoutError if it does not answer, and ConnectionError if it has
    disconnected, its answer can't be used, or it supports no common version.
    """
    retries, failures = RetryPolicy(), 0
    while True:
        try:
            return await _open(connection, options)
        except PeerError as error:
            failures += 1
            pause = retries.retry_delay("server/discover", {}, error, failures, OPENING_SECONDS)
            if pause is None:
                raise
        await anyio.sleep(pause)


async def _open(connection: Connection, options: ClientOptions) -> None:
    session = connection.session
    # `server/discover` harms no server: older servers answer with some error, or not at all.
    step = await _discover(connection, options) if session.stateless else OpeningStep.HANDSHAKE
    if step is OpeningStep.RETRY:
        step = await _discover(connection, options)
    if step is OpeningStep.STATELESS:
        return
    with connection.send(session.initialize()) as waiter:
        answer = await connection.answer(waiter, options.opening_seconds or OPENING_SECONDS)
    if isinstance(answer, Failure):
        names_versions = session.handle_refusal(answer)
        # The server may have been slow to start, and have received the probe after its time limit.
        if session.switch_to_stateless() and await _discover(connection, options) is OpeningStep.STATELESS:
            return
        if names_versions:
            raise _no_common_version(session, options)
    if isinstance(answer, InputWanted) or not session.handle_initialize(result_of(answer)):
        raise _no_common_version(session, options)
    connection.flush()
    if options.log_level is not None and session.server is not None and session.server.can("logging"):
        # If the server refuses the log level, it is used without one.
        try:
            await connection.call("logging/setLevel", {"level": options.log_level}, timeout_seconds=OPENING_SECONDS)
        except PeerError as error:
            if error.code > 0:  # an HTTP status, which is not about the level
                raise
            _log.warning("the server refuses the log level %s: %s", options.log_level, error)


async def _discover(connection: Connection, options: ClientOptions) -> OpeningStep:
    """Send `server/discover`. The result says whether the session is now open, a handshake is to be tried, or
    discovery is to be repeated."""
    session = connection.session
    opening_seconds = options.opening_seconds or OPENING_SECONDS
    # Some servers do not answer unknown requests, so the time limit is short if a handshake can be tried instead.
    timeout_seconds = options.probe_seconds if session.accepts_handshake else opening_seconds
    answer: Response | Failure | InputWanted | None = None
    with connection.send(session.discover()) as waiter:
        try:
            answer = await connection.answer(waiter, timeout_seconds)
        except Unreached:
            raise
        except (TimeoutError, ConnectionError) as error:
            # There is no usable answer: older servers know neither the method nor its params.
            if not session.accepts_handshake:
                raise
            if connection.gone.is_set():
                raise EndedAtProbe(str(error)) from None
    step = session.handle_discovery(answer if isinstance(answer, Response | Failure) else None)
    if step is OpeningStep.FAIL or (step is OpeningStep.HANDSHAKE and not session.accepts_handshake):
        if isinstance(answer, Failure) and not session.offered:
            result_of(answer)
        raise _no_common_version(session, options)
    return step


def _no_common_version(session: ClientSession, options: ClientOptions) -> ConnectionError:
    accepted = options.accepted_versions()
    ours = f"{accepted[0]} to {accepted[-1]}" if len(accepted) > 1 else f"only {accepted[0]}"
    # Only dates are included, because another text from the server might say anything.
    dates = [version for version in session.offered if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", version)][
        :_MAX_NAMED_VERSIONS
    ]
    theirs = f"the server supports {', '.join(dates)}" if dates else "the server does not name its versions"
    return ConnectionError(f"no common protocol version: {theirs}, and this client supports {ours}")
