"""A session with the server that a command line names, from its start to the exit code of the command."""

import logging
import sys
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from typing import NamedTuple, TypeVar

import anyio

from servers.gateway.proxy.remote import connect_as_user
from shared.client.client import Client
from shared.client.connect import connect
from shared.client.options import ClientOptions
from shared.errors import InternalError, McpError, PeerError
from shared.program.messages import exit_with_error, needs_extra
from shared.protocol.wire.codec import Framing
from shared.text import plain

from ..log_records import take_records
from .endings import MISUSED, REFUSED, UNREACHED, Misuse
from .targets import Asked, find_target
from .waking import woken_by_signals

Answer = TypeVar("Answer")
Work = Callable[[Client], Awaitable[int]]
"""What is done in the session; gives the exit code."""
Connect = Callable[[ClientOptions], AbstractAsyncContextManager[Client]]
"""Opens the session."""
_KEPT = 3
"""Lines of what the server wrote to stderr that are shown where there is no connection."""
_MOST_LINES = 200
"""Lines that are kept, for a traceback."""
_TRACEBACK = "Traceback (most recent call last)"
_LETS_NOBODY_IN = (401, 403)


class Spoken(NamedTuple):
    """What a server is spoken to in, where it is not what the specification says."""

    dialect: str | None = None
    framing: Framing | None = None


@dataclass(frozen=True, slots=True)
class Talk:
    """How a server is talked to."""

    program: str
    """How messages begin: the name of the command."""
    asked: Asked
    seconds: float = 60.0
    """Of the start, and of each request."""
    is_verbose: bool = False
    """Whether what the server logs is shown."""
    spoken: Spoken = field(default_factory=Spoken)

    def say(self, text: str) -> None:
        """Tells people something, beside the output."""
        sys.stderr.write(f"{self.program}: {plain('; '.join(text.splitlines()))}\n")
        sys.stderr.flush()

    def _show(self, lines: Iterable[str]) -> None:
        for line in lines:
            sys.stderr.write(f"{plain(line)}\n")
        sys.stderr.flush()

    async def bounded(self, answer: Awaitable[Answer]) -> Answer:
        """What is awaited, in the time that the server has. Raises TimeoutError besides what that raises."""
        with anyio.fail_after(self.seconds):
            return await answer

    def run(self, work: Work, options: ClientOptions | None = None) -> int:
        """Opens the session, does the work and closes it; the exit code. Ends the program where the command line asks
        for what can't be done."""
        try:
            target = find_target(self.asked)
        except (Misuse, ValueError) as error:
            exit_with_error(self.program, str(error))
        has_token = any(name.lower() == "authorization" for name in target.headers)
        options = replace(options or ClientOptions(), dialect=self.spoken.dialect)
        framing = self.spoken.framing
        way: Connect = partial(connect, target.command, env=target.env, cwd=target.directory, framing=framing)
        if target.url and framing is not None:
            exit_with_error(self.program, "--framing goes with a server that is started: over HTTP there is none")
        if target.url:
            way = partial(connect_as_user, target.url, headers=target.headers)
        advice = "; its arguments are given after `--`" if target.command and not self.asked.words else ""
        return self.reach(Reached(target.name, way, has_token, advice), work, options)

    def reach(self, server: "Reached", work: Work, options: ClientOptions | None = None) -> int:
        """The same with a server that was found already."""
        return anyio.run(self._run, server, work, options or ClientOptions())

    async def _run(self, server: "Reached", work: Work, options: ClientOptions) -> int:
        log, phase = _Log(self), _Phase(self.seconds, server.has_token, server.advice)
        # A server that has never heard of the newest protocol may be silent, and needs time for an older one.
        options = replace(options, probe_seconds=min(options.probe_seconds, self.seconds / 2))
        try:
            with take_records("shared", log), woken_by_signals():
                async with self._opened(server.connect, options, phase) as client:
                    return await work(client)
        except BrokenPipeError:  # nobody reads on; a pipe of the server's that breaks is a ConnectionError
            raise
        except Misuse as error:
            self.say(str(error))
            return MISUSED
        except (OSError, McpError) as error:
            self.say(phase.told(server.name, error, log.last_words))
            if isinstance(error, PeerError) and error.code == InternalError.code:
                self._show(log.traceback)
            return REFUSED if phase.is_open and isinstance(error, McpError) else UNREACHED

    @asynccontextmanager
    async def _opened(self, begin: Connect, options: ClientOptions, phase: "_Phase") -> AsyncIterator[Client]:
        with anyio.fail_after(self.seconds) as opening:
            try:
                async with begin(options) as client:
                    phase.is_open, opening.deadline = True, inf
                    yield client
            except ModuleNotFoundError as error:
                raise Misuse(f"{error.name} is not installed; {needs_extra('client')}") from None
            except ValueError as error:
                if phase.is_open:
                    raise
                raise Misuse(str(error)) from None


class Reached(NamedTuple):
    """A server, and how it is reached."""

    name: str
    """How messages call it; it holds no secret."""
    connect: Connect
    has_token: bool
    """Whether it is told who we are."""
    advice: str = ""
    """What may help where it says why it does not start."""


@dataclass(slots=True)
class _Phase:
    """Whether the session is open already."""

    seconds: float
    has_token: bool
    advice: str
    is_open: bool = False

    def told(self, name: str, error: Exception, last_words: str) -> str:
        """What has gone wrong."""
        reason = (str(error) or type(error).__name__).rstrip(".")
        if isinstance(error, OSError) and error.strerror:
            reason = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        if isinstance(error, TimeoutError):
            reason = f"no answer in {self.seconds:g} s; --timeout gives it more"
        if isinstance(error, PeerError) and error.code in _LETS_NOBODY_IN and not self.has_token:
            reason += "; --token-file or --token-variable has a token sent, and `login` logs in"
        if isinstance(error, McpError) and self.is_open:
            return f"{name} refuses: {reason}" if isinstance(error, PeerError) else f"{name}: {reason}"
        said = f"; last it said: {last_words}" if last_words else ""
        is_lost = self.is_open and not isinstance(error, TimeoutError)
        what = f"the connection to {name} was lost" if is_lost else f"no connection to {name}"
        return f"{what}: {reason}{said}{self.advice if said and not self.is_open else ''}"


class _Log(logging.Handler):
    """What our client and the server log: warnings are shown, and the rest where it was asked for."""

    def __init__(self, talk: Talk) -> None:
        super().__init__(logging.INFO)
        self._talk = talk
        self._lines: deque[str] = deque(maxlen=_MOST_LINES)

    @property
    def last_words(self) -> str:
        """What the server wrote last to stderr."""
        words = [" ".join(line.split()) for line in self._lines]
        return " | ".join([line for line in words if line][-_KEPT:])

    @property
    def traceback(self) -> list[str]:
        """The lines of the last traceback that the server wrote to stderr; none where it wrote none."""
        lines = list(self._lines)
        begins = [number for number, line in enumerate(lines) if line.startswith(_TRACEBACK)]
        return lines[begins[-1] :] if begins else []

    def emit(self, record: logging.LogRecord) -> None:
        """Takes one record."""
        text = record.getMessage()
        if record.name == "shared.transports.process":
            self._lines.append(text.partition(": ")[2])
        if self._talk.is_verbose or record.levelno >= logging.WARNING:
            self._talk.say(text)
