"""Tries a server: starts it, calls it in each era of the protocol, and derives findings from the results."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import anyio

from servers.catalog import Entry
from shared.client.client import Client
from shared.client.options import ClientOptions
from shared.contracts import ClosableTransport
from shared.errors import McpError, PeerError
from shared.protocol.session.events import Outgoing
from shared.protocol.versions import NEWEST, NEWEST_HANDSHAKE
from shared.protocol.wire.codec import Codec
from shared.protocol.wire.jsonrpc import Malformed, Message
from shared.text import format_count
from shared.transports.child.process import start_process
from shared.transports.framed import framed

from ..program_name import program_name
from .findings import Finding, fault, fine, warning
from .prompt_files import NO_PROBLEMS, PromptProblems, problem_findings, read_problems

MODES = ("handshake", "stateless")
_ERAS = {"handshake": NEWEST_HANDSHAKE.date, "stateless": NEWEST.date}
_MIN_SECRET = 4


class StartCommand(NamedTuple):
    """The command, environment and working directory that start a server."""

    command: Sequence[str]
    env: Mapping[str, str]
    directory: Path


class Outcome(StrEnum):
    """The outcome of one attempt."""

    ANSWERED = "answered"
    REFUSED = "refused"
    """The server answered with an error, or with an invalid result."""
    SILENT = "silent"
    ENDED = "ended"
    """The program exited before it answered."""
    UNSTARTABLE = "unstartable"


class Attempt(NamedTuple):
    """The result of one session with a server, in one mode of the client (era of the protocol)."""

    mode: str
    outcome: Outcome
    reason: str = ""
    code: int | None = None
    """The code of the error: one of JSON-RPC, or an HTTP status, which is positive."""
    version: str = ""
    """The version of the protocol."""
    info: Mapping[str, Any] = {}
    """The name and version that the server reports."""
    tools: int = 0
    noise: int = 0
    """The number of lines that the server wrote to stdout and that are not messages."""
    exit_code: int | None = None
    last_line: str = ""
    """The last line that the server wrote to stderr."""
    problems: PromptProblems = NO_PROBLEMS


class _CountingTransport:
    """The transport to a child process; counts the lines that are not messages, which a client ignores."""

    def __init__(self, transport: ClosableTransport) -> None:
        self.noise = 0
        self.ended = False
        """True if the child closed its stdout before the client closed the connection."""
        self._transport = transport

    async def receive(self) -> Sequence[Message]:
        try:
            messages = await self._transport.receive()
        except anyio.EndOfStream:
            self.ended = True
            raise
        self.noise += sum(isinstance(message, Malformed) for message in messages)
        return messages

    async def send(self, outgoing: Sequence[Outgoing]) -> None:
        await self._transport.send(outgoing)

    async def aclose(self) -> None:
        await self._transport.aclose()


async def try_server(start: StartCommand, mode: str, time_limit: float) -> Attempt:
    """Start the server, open a session, list the tools, and stop it. It has `time_limit` seconds to answer."""
    try:
        process = start_process(start.command, env=start.env, cwd=start.directory, stderr="keep")
        async with process as child:
            transport = _CountingTransport(framed(child, Codec(is_client=True)))
            result = await converse(Client(transport, ClientOptions(mode=mode)), mode, time_limit)
    except (OSError, ValueError) as error:
        # ValueError is raised for an argument or a variable that the system does not accept, such as one with a null
        # character.
        reason = str(error)
        if isinstance(error, OSError) and error.strerror:
            reason = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        return Attempt(mode, Outcome.UNSTARTABLE, reason)
    if result.outcome is Outcome.REFUSED and transport.ended:
        result = result._replace(outcome=Outcome.ENDED)
    lines = [line.strip() for line in child.stderr.splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    return result._replace(noise=transport.noise, exit_code=child.exit_code, last_line=last)


async def converse(client: AbstractAsyncContextManager[Client], mode: str, time_limit: float) -> Attempt:
    """Open a session with `client`, list the tools, and close it; return the result. This takes at most `time_limit`
    seconds."""
    result = Attempt(mode, Outcome.SILENT, f"no answer within {time_limit:g} seconds")
    with anyio.move_on_after(time_limit), suppress(TimeoutError):
        try:
            async with client as session:
                server = session.server
                tools = len(await session.raw.list_tools()) if server.can("tools") else 0
                result = Attempt(mode, Outcome.ANSWERED, version=server.version, info=server.info, tools=tools)
                result = result._replace(problems=await read_problems(session))
        except PeerError as error:
            result = Attempt(mode, Outcome.REFUSED, str(error), code=error.code)
        except (McpError, ConnectionError) as error:
            result = Attempt(mode, Outcome.REFUSED, str(error))
    return result


# Findings from the results


class TriedServer(NamedTuple):
    """The server that was tried, and texts for the findings about it."""

    where: str
    entry: Entry
    advice: str
    """Advice on how to have the right program started."""
    correct: str
    """Advice on how to correct the arguments."""
    secrets: Sequence[str] = ()
    """The values that must not be displayed."""
    is_outside_catalog: bool = False
    """True if the server is not in the catalog, so that its name and version are unknown."""
    own_file: str = ""
    """The user's own Python file that is started, if it is one."""


def judge(tried: TriedServer, attempts: Sequence[Attempt]) -> Iterator[Finding]:
    """Yield the findings about a server, given its attempts in all modes."""
    failed = [attempt for attempt in attempts if attempt.outcome is not Outcome.ANSWERED]
    if len(failed) == len(attempts):
        yield _explain_failure(tried, failed[0])
    else:
        for attempt in failed:
            what = f"it does not speak {_ERAS[attempt.mode]}: {mask(attempt.reason, tried.secrets)}"
            yield fault(tried.where, what, f"if it is an older version, update it, or {tried.advice}")
        yield from judge_version(tried, next(attempt for attempt in attempts if attempt.outcome is Outcome.ANSWERED))
    noise = max(attempt.noise for attempt in attempts)
    if noise:
        lines = (
            "1 line of its stdout is not a message" if noise == 1 else f"{noise} lines of its stdout are not messages"
        )
        fix = "make everything that it starts write to stderr: look for print or echo in a wrapper or a shell profile"
        yield fault(tried.where, f"{lines}, so clients may disconnect", fix)
    elif not failed:
        versions = " and ".join(attempt.version for attempt in attempts)
        yield fine(tried.where, f"it starts, speaks {versions}, and has {format_count(attempts[0].tools, 'tool')}")
    yield from problem_findings(tried.where, attempts[0].problems)


def judge_version(tried: TriedServer, attempt: Attempt) -> Iterator[Finding]:
    """Check that the server that has answered is the expected one, in the version of the catalog."""
    name, version = attempt.info.get("name"), attempt.info.get("version")
    if tried.is_outside_catalog:
        return
    if name != tried.entry.name:
        called = mask(repr(name), tried.secrets)
        yield fault(tried.where, f"it is not {tried.entry.name}: it calls itself {called}", tried.advice)
    elif version != tried.entry.version:
        what = f"it is version {mask(str(version), tried.secrets)}, but this is {tried.entry.version}"
        yield warning(tried.where, what, f"update it where it is installed, or {tried.advice}")


def mask(text: str, secrets: Sequence[str]) -> str:
    """Return `text` with `***` instead of each secret. The longest come first: one may contain another."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _MIN_SECRET:
            text = text.replace(secret, "***")
    return text


def split_secrets(values: Iterable[str]) -> list[str]:
    """Return these values and their parts, since an error message may contain, for instance, the token of a header
    without its scheme."""
    return [part for value in values for part in (value, *re.split(r"[=:@\s]+", value))]


def _explain_failure(tried: TriedServer, attempt: Attempt) -> Finding:
    words = attempt.last_line.removeprefix(f"python -m {tried.entry.module}: ")
    where, last_output = tried.where, f"; its last output: {mask(words, tried.secrets)}" if words else ""
    by_hand = "start it in a terminal, and read its whole output"
    match attempt.outcome:
        case Outcome.UNSTARTABLE:
            return fault(where, f"it can't be started: {mask(attempt.reason, tried.secrets)}", tried.advice)
        case Outcome.ENDED:
            end = f"it ended with exit code {attempt.exit_code}"
            if attempt.exit_code is not None and attempt.exit_code < 0 and os.name == "posix":
                end = f"it was ended by signal {-attempt.exit_code}"
            fix = by_hand
            if "No module named" in attempt.last_line or "ImportError" in attempt.last_line:
                fix = tried.advice
            elif attempt.exit_code == 0 and not attempt.last_line and tried.own_file:
                fix = f"end {tried.own_file} with `run(app)`"
            elif "it needs the extra" in attempt.last_line:
                fix = "run the command that it names"
            elif attempt.exit_code == 2:
                options = f"; `{program_name()} info {tried.entry.name}` lists its arguments"
                fix = tried.correct + ("" if tried.is_outside_catalog else options)
            return fault(where, f"{end} before it answered{last_output}", fix)
        case Outcome.SILENT:
            fix = f"{by_hand}; files on a network or a sleeping disk may delay it"
            return fault(where, f"{attempt.reason} after it was started{last_output}", fix)
        case _:
            reason = mask(attempt.reason, tried.secrets)
            return fault(where, f"it does not answer as an MCP server does: {reason}{last_output}", by_hand)
