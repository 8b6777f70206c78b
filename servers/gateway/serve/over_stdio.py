"""Runs several servers in one process as one, for a client on the standard streams.

A server that fails is opened again. When the program ends, each server has a limited time to close.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, Literal

import anyio
from anyio import to_thread

from shared.contracts import Observer
from shared.extensions.dialects import DIALECTS
from shared.program.messages import exit_with_error
from shared.program.observation import open_telemetry
from shared.program.process import Options, exit_at_once, explain_in_terminal, run_program, set_up_process
from shared.program.run import (
    audit_extensions,
    becomes_ready,
    open_audit,
    open_trace,
    run_stdio,
    send_metrics,
    trace_extensions,
)
from shared.server.run import Run
from shared.server.server import Server
from shared.telemetry.supervised import SupervisedServer

from .bridge_server import log_commands
from .choice import ChosenServer, third_party_names
from .gateway_server import make_gateway, wait_until_settled
from .selection import JOINED


class JoinedProgram:
    """A program with several servers, which a client starts as one."""

    def __init__(self, servers: Sequence[ChosenServer], prefix: Literal["auto", "always"], options: Options) -> None:
        for server in servers:
            server.apply_limits(options)
        self.audit: Any = None
        self.telemetry: Any = None
        self.members = [SupervisedServer(server.name, partial(self._open, server)) for server in servers]
        apps = [server.app for server in servers]
        self.app: Server[Any] = make_gateway(self.members, apps, prefix, third_party_names(servers))
        self.drain_seconds = max(app.limits.drain_seconds for app in apps)
        self.options = options

    def _open(self, server: ChosenServer) -> AbstractAsyncContextManager[Run[Any]]:
        extensions = [*server.extensions(self.options), *audit_extensions(self.audit, server.name)]
        extensions += trace_extensions(self.telemetry, server.name, over_http=False)
        return server.app.open(server.settings, extensions=extensions)

    def run(self, program: str, exposed: str | None) -> int:
        """Serve until the client or a signal ends the program; return the exit code. Exits with a message if it can't
        start."""
        try:
            trace, self.audit = open_trace(self.options), open_audit(self.options)
            self.telemetry = open_telemetry(self.options, "mcp-servers")
        except ValueError as error:
            exit_with_error(program, str(error))
        set_up_process(self.options, exposed)
        log_commands(self.options.log_level)
        if os.isatty(0):
            explain_in_terminal(program)
        try:
            return run_program(program, partial(self._run, trace), prefer_uvloop=False)
        finally:
            for records in filter(None, (trace, self.audit, self.telemetry)):
                records.close()

    async def _run(self, trace: Observer | None) -> None:
        # The servers share the threads of the process. Allow as many as they would have together if each ran alone.
        to_thread.current_default_thread_limiter().total_tokens *= len(self.members)
        extensions = [DIALECTS] if self.options.dialects == "on" else []
        extensions += audit_extensions(self.audit, JOINED)
        extensions += trace_extensions(self.telemetry, JOINED, over_http=False)
        async with anyio.create_task_group() as tasks, AsyncExitStack() as stack:
            stack.callback(tasks.cancel_scope.cancel)
            await stack.enter_async_context(self._members())
            run: Run[Any] = await stack.enter_async_context(self.app.open(extensions=extensions))
            run.hooks.trace = trace
            send_metrics(self.telemetry, run, JOINED)
            if await becomes_ready(partial(wait_until_settled, self.members)):
                await run_stdio(run, self.options, tasks)

    @asynccontextmanager
    async def _members(self) -> AsyncIterator[None]:
        """Run all members during the block."""
        for member in self.members:
            member.start()
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                ended = await asyncio.gather(*(member.close(self.drain_seconds) for member in self.members))
            if not all(ended):
                exit_at_once()
