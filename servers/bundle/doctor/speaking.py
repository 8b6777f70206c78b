"""Starts a server as a client does, and speaks to it in one era of the protocol."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import anyio

from shared.client.client import Client
from shared.client.options import ClientOptions
from shared.contracts import ClosableTransport
from shared.errors import McpError, PeerError
from shared.protocol.session.events import Outgoing
from shared.protocol.wire.codec import Codec
from shared.protocol.wire.jsonrpc import Malformed, Message
from shared.transports.framed import framed
from shared.transports.process import start_process

__all__ = ["MODES", "Outcome", "Start", "Talk", "converse", "talk"]

MODES = ("handshake", "stateless")


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
                tools = len(await entered.list_tools()) if server.can("tools") else 0
                said = Talk(mode, Outcome.ANSWERED, version=server.version, info=server.info, tools=tools)
        except PeerError as error:
            said = Talk(mode, Outcome.REFUSED, str(error), code=error.code)
        except (McpError, ConnectionError) as error:
            said = Talk(mode, Outcome.REFUSED, str(error))
    return said
