"""Starts a server, speaks to it in each era of the protocol, and says what the talks show."""

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
from .prompt_files import NO_PROBLEMS, PromptProblems, judge_problems, read_problems

MODES = ("handshake", "stateless")
_ERAS = {"handshake": NEWEST_HANDSHAKE.date, "stateless": NEWEST.date}
_SHORTEST_SECRET = 4


class Start(NamedTuple):
    """How a server is started."""

    command: Sequence[str]
    env: Mapping[str, str]
    directory: Path


class Outcome(StrEnum):
    """What came of it."""

    ANSWERED = "answered"
    REFUSED = "refused"
    """It answered with an error, or with what can't be used."""
    SILENT = "silent"
    ENDED = "ended"
    """The program ended by itself."""
    UNSTARTABLE = "unstartable"


class Talk(NamedTuple):
    """What was said in one era."""

    mode: str
    outcome: Outcome
    reason: str = ""
    code: int | None = None
    """That of the error it answered with; below 600 it is the status of HTTP."""
    version: str = ""
    """The version of the protocol."""
    info: Mapping[str, Any] = {}
    """What the server says of itself."""
    tools: int = 0
    noise: int = 0
    """Lines on its stdout that are no messages."""
    exit_code: int | None = None
    last_words: str = ""
    """The last line it wrote to stderr."""
    problems: PromptProblems = NO_PROBLEMS


class _Listening:
    """The pipes of a child, with an ear for what a client passes over."""

    def __init__(self, transport: ClosableTransport) -> None:
        self.noise = 0
        self.ended = False
        """Whether the child closed its stdout before we did."""
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


async def talk(start: Start, mode: str, seconds: float) -> Talk:
    """Starts the server, opens a session, lists its tools, and ends it; it has so many `seconds` to answer."""
    try:
        process = start_process(start.command, env=start.env, cwd=start.directory, stderr="keep")
        async with process as child:
            listening = _Listening(framed(child, Codec(is_client=True)))
            said = await converse(Client(listening, ClientOptions(mode=mode)), mode, seconds)
    except (OSError, ValueError) as error:
        # A ValueError is for an argument or a variable that no system takes, as one with a null character.
        reason = error.strerror if isinstance(error, OSError) else None
        return Talk(mode, Outcome.UNSTARTABLE, reason or str(error))
    if said.outcome is Outcome.REFUSED and listening.ended:
        said = said._replace(outcome=Outcome.ENDED)
    lines = [line.strip() for line in child.stderr.splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    return said._replace(noise=listening.noise, exit_code=child.exit_code, last_words=last)


async def converse(client: AbstractAsyncContextManager[Client], mode: str, seconds: float) -> Talk:
    """Opens a session, lists the tools, and closes it."""
    said = Talk(mode, Outcome.SILENT, f"no answer in {seconds:g} seconds")
    with anyio.move_on_after(seconds), suppress(TimeoutError):
        try:
            async with client as entered:
                server = entered.server
                tools = len(await entered.plain.list_tools()) if server.can("tools") else 0
                said = Talk(mode, Outcome.ANSWERED, version=server.version, info=server.info, tools=tools)
                said = said._replace(problems=await read_problems(entered))
        except PeerError as error:
            said = Talk(mode, Outcome.REFUSED, str(error), code=error.code)
        except (McpError, ConnectionError) as error:
            said = Talk(mode, Outcome.REFUSED, str(error))
    return said


# What the talks show


class Tried(NamedTuple):
    """What was started, and how to speak of it."""

    where: str
    entry: Entry
    another: str
    """How to have another program started in its place."""
    correct: str
    """How to correct what it is started with."""
    secrets: Sequence[str] = ()
    """What must not be shown."""
    is_foreign: bool = False
    """Whether it answers for a server of somebody else, of which no catalog says what it is called."""


def judge(tried: Tried, talks: Sequence[Talk]) -> Iterator[Finding]:
    """What was found, from the talk in each era."""
    failed = [talk for talk in talks if talk.outcome is not Outcome.ANSWERED]
    if len(failed) == len(talks):
        yield _failed(tried, failed[0])
    else:
        for talk in failed:
            what = f"it does not speak {_ERAS[talk.mode]}: {mask(talk.reason, tried.secrets)}"
            yield fault(tried.where, what, f"if it is an older version, update it, or {tried.another}")
        yield from judge_version(tried, next(talk for talk in talks if talk.outcome is Outcome.ANSWERED))
    noise = max(talk.noise for talk in talks)
    if noise:
        lines = (
            "1 line of its stdout is not a message" if noise == 1 else f"{noise} lines of its stdout are not messages"
        )
        fix = "have whatever it starts write to stderr: look for print or echo in a wrapper, or in a shell's profile"
        yield fault(tried.where, f"{lines}, where clients break off", fix)
    elif not failed:
        spoken = " and ".join(talk.version for talk in talks)
        yield fine(tried.where, f"it starts, speaks {spoken}, and has {format_count(talks[0].tools, 'tool')}")
    yield from judge_problems(tried.where, talks[0].problems)


def judge_version(tried: Tried, talk: Talk) -> Iterator[Finding]:
    """Whether the one that answered is the server and the version that the catalog has."""
    name, version = talk.info.get("name"), talk.info.get("version")
    if tried.is_foreign:
        return
    if name != tried.entry.name:
        called = mask(repr(name), tried.secrets)
        yield fault(tried.where, f"it is not {tried.entry.name}: it calls itself {called}", tried.another)
    elif version != tried.entry.version:
        what = f"it is version {mask(str(version), tried.secrets)}, and here is {tried.entry.version}"
        yield warning(tried.where, what, f"update it where it is installed, or {tried.another}")


def mask(text: str, secrets: Sequence[str]) -> str:
    """`text` without the secrets, longest first, since one may be part of another."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, "***")
    return text


def split_secrets(values: Iterable[str]) -> list[str]:
    """These secrets, and what they are made of: who repeats a header may leave out the word before its token."""
    return [part for value in values for part in (value, *re.split(r"[=:@\s]+", value))]


def _failed(tried: Tried, talk: Talk) -> Finding:
    words = talk.last_words.removeprefix(f"python -m {tried.entry.module}: ")
    where, said = tried.where, f"; last it said: {mask(words, tried.secrets)}" if words else ""
    by_hand = "start it in a terminal, and read all that it says"
    match talk.outcome:
        case Outcome.UNSTARTABLE:
            return fault(where, f"it can't be started: {talk.reason}", tried.another)
        case Outcome.ENDED:
            end = f"it ended with exit code {talk.exit_code}"
            if talk.exit_code is not None and talk.exit_code < 0 and os.name == "posix":
                end = f"it was ended by signal {-talk.exit_code}"
            return fault(where, f"{end} before it answered{said}", _fix(tried, talk) or by_hand)
        case Outcome.SILENT:
            fix = f"{by_hand}; files on a network or a disk that sleeps may hold it up"
            return fault(where, f"it gives no answer: {talk.reason} after it was started{said}", fix)
        case _:
            reason = mask(talk.reason, tried.secrets)
            return fault(where, f"it does not answer as an MCP server does: {reason}{said}", by_hand)


def _fix(tried: Tried, talk: Talk) -> str:
    """What its last words call for."""
    if "No module named" in talk.last_words or "ImportError" in talk.last_words:
        return tried.another
    if "it needs the extra" in talk.last_words:
        return "run the command that it names"
    if talk.exit_code == 2 and tried.is_foreign:
        return tried.correct
    if talk.exit_code == 2:
        return f"{tried.correct}; `{program_name()} info {tried.entry.name}` lists what it takes"
    return ""
