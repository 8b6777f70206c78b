"""A session of a command with the server on its command line, from the connection to the exit code."""

import logging
import re
import sys
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from math import inf
from typing import NamedTuple, TypeVar

import anyio

from servers.gateway.proxy.remote import connect_as_user
from shared.client.client import Client
from shared.client.connect import connect
from shared.client.options import ClientOptions
from shared.errors import InternalError, McpError, PeerError
from shared.program.messages import exit_with_error, missing_extra_message
from shared.protocol.wire.codec import Framing
from shared.text import plain

from ..log_records import take_records
from .exit_codes import MISUSED, REFUSED, UNREACHED, Misuse
from .signal_wakeup import wake_on_signals
from .targets import ServerChoice, find_target

Answer = TypeVar("Answer")
Work = Callable[[Client], Awaitable[int]]
"""Does the work of a command in an open session; returns the exit code."""
Connect = Callable[[ClientOptions], AbstractAsyncContextManager[Client]]
"""Opens a session with these options."""
_MAX_LINES = 200
"""Maximum number of lines of the server's stderr that are stored, which is enough for a traceback."""
_ERROR = re.compile(r"(?:Uncaught )?[A-Za-z_.]*(?:Error|Exception)(?: \[\w+\])?(?:: |$)")
"""Matches a line in which Python or Node.js reports an exception."""
_GROUP = re.compile(r"(?:\| )+")
"""Matches the beginning of a line in the traceback of an exception group."""
_GROUP_RULE = re.compile(r"[|+ ]*\+[-+ ]*-{4}")
"""Matches the lines that separate the errors of the group."""
_ARGUMENTS = re.compile(
    r"(?:usage|arguments?|options?|required|give|specify|provide|missing|at least)\b|(?<!\S)-\w|--\w", re.IGNORECASE
)
"""Matches an error about arguments, as opposed to one about variables or files."""
_UNHELPFUL = re.compile(r"at |[{}^]|Node\.js v|For further information visit ")
"""Matches lines after that of the exception that explain nothing."""
_MAX_PARTS = 3
"""Maximum number of lines of an exception that are shown. In those of pydantic, the second line names the field, and
the third says what is wrong."""
_UNREACHED = re.compile(r"no connection to \S+: ")
_FAILURE = re.compile(r"Traceback \(most recent call last\)|[0-9-]+ [0-9:,]+ ERROR ")
_NO_TOKEN, _NO_ACCESS = 401, 403
"""The HTTP statuses with which a server refuses a client: without valid credentials, and without permission."""


class ProtocolVariant(NamedTuple):
    """A server's deviations from the specification."""

    dialect: str | None = None
    framing: Framing | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """The settings of a session with a server."""

    program: str
    """The name of the command, with which messages begin."""
    choice: ServerChoice
    time_limit: float = 60.0
    """Seconds that the server has to start, and for each answer."""
    is_verbose: bool = False
    """True if log messages of the server are shown."""
    variant: ProtocolVariant = field(default_factory=ProtocolVariant)

    def say(self, text: str) -> None:
        """Print a message for people to stderr, on one line."""
        sys.stderr.write(f"{self.program}: {plain('; '.join(text.splitlines()))}\n")
        sys.stderr.flush()

    async def wait_for(self, answer: Awaitable[Answer]) -> Answer:
        """Await `answer` within the time limit. Raises TimeoutError, and the errors raised by `answer`."""
        with anyio.fail_after(self.time_limit):
            return await answer

    def run(self, work: Work, options: ClientOptions | None = None) -> int:
        """Connect to the server on the command line, do the work, and disconnect; return the exit code. Exits the
        program if the command line is invalid."""
        try:
            target = find_target(self.choice)
        except (Misuse, ValueError) as error:
            exit_with_error(self.program, str(error))
        has_token = any(name.lower() == "authorization" for name in target.headers)
        options = replace(options or ClientOptions(), dialect=self.variant.dialect)
        framing = self.variant.framing
        connect_to_server: Connect = partial(
            connect, target.command, env=target.env, cwd=target.directory, framing=framing
        )
        if target.url and framing is not None:
            exit_with_error(
                self.program, "--framing is only for a server that this command starts: HTTP has no framing"
            )
        if target.url:
            connect_to_server = partial(connect_as_user, target.url, headers=target.headers)
        advice = "; its arguments are given after `--`" if target.command and not self.choice.words else ""
        silent_advice = (
            "; does it end with `run(app)`?" if self.choice.server.endswith(".py") and not target.url else ""
        )
        timeout_advice = "; increase --timeout to wait longer"
        connector = Connector(target.name, connect_to_server, has_token, advice, silent_advice, timeout_advice)
        return self.run_on(connector, work, options)

    def run_on(self, server: "Connector", work: Work, options: ClientOptions | None = None) -> int:
        """Like `run`, for a server that is not taken from the command line."""
        return anyio.run(self._run, server, work, options or ClientOptions())

    async def _run(self, server: "Connector", work: Work, options: ClientOptions) -> int:
        log, phase = _Log(self), _Phase(self.time_limit, server)
        # A server that does not know the newest protocol may not answer the probe for it. Leave time for an older
        # version.
        options = replace(options, probe_seconds=min(options.probe_seconds, self.time_limit / 2))
        try:
            with take_records("shared", log), wake_on_signals():
                async with self._open(server.connect, options, phase) as client:
                    return await work(client)
        except BrokenPipeError:  # stdout was closed; if the server's pipe breaks, ConnectionError is raised
            raise
        except Misuse as error:
            self.say(str(error))
            return MISUSED
        except (OSError, McpError) as error:
            self.say(phase.message(error, log.last_line))
            if isinstance(error, PeerError) and error.code == InternalError.code:
                for line in log.failure:
                    sys.stderr.write(f"{plain(line)}\n")
                sys.stderr.flush()
            has_answered = phase.is_open and isinstance(error, McpError)
            return REFUSED if has_answered or _is_refusal(error) else UNREACHED

    @asynccontextmanager
    async def _open(
        self, connect_to_server: Connect, options: ClientOptions, phase: "_Phase"
    ) -> AsyncIterator[Client]:
        with anyio.fail_after(self.time_limit) as opening:
            try:
                async with connect_to_server(options) as client:
                    phase.is_open, opening.deadline = True, inf
                    yield client
            except ModuleNotFoundError as error:
                raise Misuse(f"{error.name} is not installed; {missing_extra_message('client')}") from None
            except ValueError as error:
                if phase.is_open:
                    raise
                raise Misuse(str(error)) from None


class Connector(NamedTuple):
    """A server, and how to connect to it."""

    name: str
    """The name of the server in messages, without secrets."""
    connect: Connect
    has_token: bool
    """True if the client sends credentials."""
    advice: str = ""
    """Added to the message if the server does not start because of a missing argument."""
    silent_advice: str = ""
    """Added to the message if the server ends without a reason."""
    timeout_advice: str = ""
    """Added to the message if the server does not answer in time."""


@dataclass(slots=True)
class _Phase:
    """The state of a session, as error messages need it."""

    time_limit: float
    server: Connector
    is_open: bool = False

    def message(self, error: Exception, last_line: str) -> str:
        """Return the message for an error. `last_line` is the last line that the server wrote to stderr."""
        name = self.server.name
        reason = (str(error) or type(error).__name__).rstrip(".")
        if isinstance(error, OSError) and error.strerror:
            reason = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        if isinstance(error, TimeoutError):
            reason = f"no response within {self.time_limit:g} s{self.server.timeout_advice}"
        if isinstance(error, PeerError) and error.code == _NO_TOKEN and not self.server.has_token:
            reason += "; send a token with --token-file or --token-variable, or run `login`"
        if (isinstance(error, McpError) and self.is_open) or _is_refusal(error):
            return f"{name} refused the request: {reason}" if isinstance(error, PeerError) else f"{name}: {reason}"
        last_output = f"; its last output: {last_line}" if last_line else ""
        what = f"no connection to {name}"
        if self.is_open:
            is_late = isinstance(error, TimeoutError)
            what = f"{name} does not answer" if is_late else f"the connection to {name} was lost"
        hint = ""
        if not self.is_open and last_line:
            lacks_arguments = _ARGUMENTS.search(last_line) and not _ERROR.match(last_line)
            hint = self.server.advice if lacks_arguments else ""
        elif not self.is_open and isinstance(error, ConnectionError):
            hint = self.server.silent_advice
        return f"{what}: {_UNREACHED.sub('', reason)}{last_output}{hint}"


def _is_refusal(error: Exception) -> bool:
    """Return True if the server can be reached, but refuses this client."""
    return isinstance(error, PeerError) and error.code in (_NO_TOKEN, _NO_ACCESS)


class _Log(logging.Handler):
    """Shows log records of the client, from warnings on or, if verbose, all, and stores what the server writes to
    stderr."""

    def __init__(self, session: Session) -> None:
        super().__init__(logging.INFO)
        self._session = session
        self._lines: deque[str] = deque(maxlen=_MAX_LINES)

    @property
    def last_line(self) -> str:
        """The last exception that the server wrote to stderr, with the lines that explain it (of an exception group,
        the innermost one). If it wrote none, its last line."""
        shown = (" ".join(line.split()) for line in self._lines if not _GROUP_RULE.match(line))
        lines = list(filter(None, (_GROUP.sub("", line) for line in shown)))
        begins = [number for number, line in enumerate(lines) if _ERROR.match(line)]
        if not begins:
            return lines[-1] if lines else ""
        explained = (line for line in lines[begins[-1] :] if not _UNHELPFUL.match(line))
        return "; ".join(islice(explained, _MAX_PARTS))

    @property
    def failure(self) -> list[str]:
        """The lines of the last traceback or error that the server wrote to stderr; empty if it wrote none."""
        lines = list(self._lines)
        begins = [number for number, line in enumerate(lines) if _FAILURE.match(line)]
        return lines[begins[-1] :] if begins else []

    def emit(self, record: logging.LogRecord) -> None:
        """Handle one log record."""
        text = record.getMessage()
        if record.name == "shared.transports.process":
            self._lines.append(text.partition(": ")[2])
        if self._session.is_verbose or record.levelno >= logging.WARNING:
            self._session.say(text)
