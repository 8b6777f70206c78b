"""`Client`: what a program calls to use an MCP server, in either era.

    async with connect_stdio(["mcp-bundle-filesystem", "."]) as client:
        tools = await client.list_tools()
        result = await client.call_tool("read_text_file", {"path": "README.md"})

Params and results of `request`, `notify` and `plain` are dictionaries, as on the wire.
"""

from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from anyio.abc import TaskGroup

from ..concurrency import Entered
from ..contracts import ClosableTransport
from ..errors import InternalError, McpError
from ..protocol.session.client import ClientSession, ServerDescription, first_version
from ..protocol.session.client_events import InputWanted, Notified
from ..protocol.types.client import LogLevel
from ..protocol.types.tools import CallToolResult
from ..protocol.wire.jsonrpc import Gap
from .approval import act_of
from .cache import ResponseCache
from .calls.cached import CachedRequests
from .calls.handlers import Handlers
from .calls.raw_calls import PlainCalls
from .calls.requests import Requests
from .calls.typed_calls import SECONDS, TypedCalls
from .connection.changes import Change, Changes
from .connection.connection import Connection
from .connection.link import Link
from .connection.restart import Start
from .connection.subscription import change_of
from .options import ClientOptions, Handler, Progress
from .relay import Caller
from .tasks.following import OnTask
from .tasks.own_tasks import OwnTasks
from .tasks.tool_task import StartedTool

WAITING = 1_000
"""Messages that wait for a slow server, from which on what can be dropped is better dropped."""


class Client(TypedCalls, Entered):
    """One server, from the opening of the session to its end. Any number of calls may run at once.

    Entering it raises what opening does: PeerError when the server refuses, ConnectionError when it is gone or no
    version is shared, TimeoutError when it gives no answer.
    """

    def __init__(
        self, transport: ClosableTransport, options: ClientOptions | None = None, *, reopen: Start | None = None
    ) -> None:
        """`reopen` opens another transport to the same server where the connection was lost.

        Raises ValueError for a mode or a version that does not exist, and where they leave none to speak.
        """
        self._options = options or ClientOptions()
        self._handlers = Handlers(self._options)
        self._own_tasks = OwnTasks(self._group, lambda: self.server.has_task_requests)
        self._tasks: TaskGroup | None = None
        self._link = Link(transport, self._options, self._connect, reopen, self._reopened)
        self._requests = Requests(self._link, self._handlers, self._asked_back)
        cache = ResponseCache(self._options.cache_bytes) if self._options.cache is None else self._options.cache
        self._cached = CachedRequests(self._requests, cache, server=self._options.cache_key)
        super().__init__(
            self._request_cached,
            check_arguments=self._options.check_arguments,
            has_output_schemas=lambda: self.server.has_output_schemas,
            distrust=self._cached.distrust,
        )
        self.plain = PlainCalls(self.request)
        """The calls whose results are dictionaries, as they came."""

    @asynccontextmanager
    async def _living(self) -> AsyncIterator[None]:
        try:
            async with self._link.living() as self._tasks:
                yield
        finally:
            self._cached.closed()

    @property
    def server(self) -> ServerDescription:
        """What the server says of itself, the last time that it was asked. Raises RuntimeError before the client is
        entered."""
        server = self._link.connection.session.server
        if server is None:
            raise RuntimeError("enter the client first: async with client")
        return server

    @property
    def stateless(self) -> bool:
        """Which era was chosen."""
        return self._link.connection.session.stateless

    @property
    def connected(self) -> bool:
        """Whether requests can be made: now, or after the connection was opened again."""
        return self._link.lasts

    async def ended(self) -> None:
        """Waits until requests can no longer be made, as the connection is lost for good or the client is closed."""
        await self._link.ended()

    def _connect(self, transport: ClosableTransport, mode: str) -> Connection:
        accepted = self._options.accepted()
        session = ClientSession(self._options.identity(), first_version(mode, accepted), accepted)
        answers: Mapping[str, Handler] = self._handlers.answers
        handlers = {method: self._asking_first(method, handler) for method, handler in answers.items()}
        if self._options.tasks and self._options.relay is None:
            # Not for a relay: whom it stands for decides about tasks by itself.
            handlers = self._own_tasks.handlers(handlers)
        return Connection(transport, session, handlers, self._hear, self._options.relay)

    def _group(self) -> TaskGroup:
        if self._tasks is None:
            raise InternalError("the client is not open yet")
        return self._tasks

    # What the host permits

    async def _permitted(self, method: str, params: Mapping[str, Any]) -> None:
        permit = self._options.permit
        if permit is None:
            return
        server = self._link.connection.session.server
        name = "" if server is None else str(server.info.get("name", ""))
        act = act_of(name, method, params)
        if act is not None:
            await permit(act)

    def _asking_first(self, method: str, handler: Handler) -> Handler:
        async def ask(params: dict[str, Any]) -> dict[str, Any]:
            self._cached.questioned()
            await self._permitted(method, params)
            return await handler(params)

        return ask

    # Requests

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = 60,  # noqa: ASYNC109 - every request has a limit, asked for or not
        on_progress: Progress | None = None,
        on_task: OnTask | None = None,
    ) -> dict[str, Any]:
        """The result of any request. Questions that the server answers with are put to the handlers, and the
        request is made again with their answers, up to 10 rounds.

        Where a connection was lost that is to be opened again, this is done first. A request that has failed is made
        again, up to 4 times in all, where it did not come to the server, or where it is safe to repeat. The tools are
        listed, and one of them is called once more, where a header was to repeat an argument. A call that its server
        makes a task is followed to its end, however long that takes; `on_task` hears how it is.

        Raises PeerError for an error answer; TimeoutError when a round took longer than `timeout` seconds with all
        that was made again, not counting our own answers; ConnectionError when the connection is lost; McpError for
        questions that were not declared or have no end, TaskLost for a task without one. A request that is given up
        or cancelled is cancelled at the server too. What `permit` raises of the options, Denied for one.
        """
        await self._permitted(method, params or {})
        return await self._requests(method, params, timeout=timeout, on_progress=on_progress, on_task=on_task)

    async def start_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        kept_seconds: float | None = None,
        timeout: float | None = SECONDS,  # noqa: ASYNC109 - as above
    ) -> StartedTool:
        """Calls a tool, and does not wait for it where its server makes a task of the call. Servers of 2026-07-28
        decide that and how long the task is kept, result and all; those of 2025-11-25 are asked for a task where the
        tool may be one, which is kept for `kept_seconds` or as long as the server likes.

        Questions that come before there is a task are answered here. Raises as `call_tool` does.
        """
        params = await self._call_of(name, arguments, timeout)
        await self._permitted("tools/call", params)
        task: dict[str, Any] | None = None
        if await self._requests.support(params, timeout) in ("optional", "required"):
            task = {} if kept_seconds is None else {"ttl": int(kept_seconds * 1_000)}
        answered, state = await self._requests.begun(params, timeout, task)
        if state is None:
            return self._started({"tool": name, "result": answered}, timeout)
        return self._started({"tool": name, "taskId": state.id}, timeout)

    def take_up(
        self,
        saved: Mapping[str, Any],
        *,
        timeout: float | None = SECONDS,
    ) -> StartedTool:
        """Goes on with a tool that was started before, by this client or another one of the same server and user:
        `saved` is what `StartedTool.saved` gave. Raises ValueError where it is not."""
        id_, answered = saved.get("taskId"), saved.get("result")
        if not isinstance(id_, str) and not isinstance(answered, dict):
            raise ValueError("this was not saved of a tool that was started")
        return self._started(saved, timeout)

    def _started(self, saved: Mapping[str, Any], seconds: float | None) -> StartedTool:
        def read(name: str, result: dict[str, Any]) -> Awaitable[CallToolResult]:
            return self._result_of(name, result, seconds)

        way = self._requests.way(seconds)
        tool, id_ = str(saved.get("tool", "")), saved.get("taskId")
        return StartedTool(tool, way, read, id=id_, answered=saved.get("result"))

    async def exchange(
        self,
        method: str,
        params: Mapping[str, Any],
        caller: Caller,
        *,
        timeout: float | None = 60,  # noqa: ASYNC109 - as above
    ) -> dict[str, Any] | InputWanted:
        """One round of a request on behalf of `caller`: its result, or the questions that the server answers with. It
        is made again where `request` would do so. Nobody is asked to permit it.

        Raises PeerError, TimeoutError and ConnectionError like `request`.
        """
        return await self._requests.exchange(method, dict(params), caller, timeout)

    async def _request_cached(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = 60,  # noqa: ASYNC109 - as above
        on_progress: Progress | None = None,
    ) -> dict[str, Any]:
        """`request`, whose result may have been kept: to read that is a read, and is to be permitted as well."""
        await self._permitted(method, params or {})
        return await self._cached(method, params, timeout=timeout, on_progress=on_progress)

    async def ping(self) -> None:
        """Returns when the server has answered; where there is no ping any more, it is asked what it is.

        Raises like `request`.
        """
        await self.request("server/discover" if self.stateless else "ping")

    async def set_log_level(self, level: LogLevel) -> None:
        """Has the server send the log messages of this level and graver ones from now on.

        Raises like `request`, and McpError where a server of the handshake era did not declare that it sends any.
        """
        if not self.stateless and not self.server.can("logging"):
            raise McpError("the server does not declare that it sends log messages")
        # Also for the connection that is opened after this one.
        self._options = self._link.options = replace(self._options, log_level=level)
        self._link.connection.session.log_level(level)
        if not self.stateless:
            await self.request("logging/setLevel", {"level": level})

    def roots_changed(self) -> None:
        """Tells the server to ask for the roots again; in the stateless era it asks with every call anyhow."""
        if not self.stateless:
            self.notify("notifications/roots/list_changed")

    @property
    def is_behind(self) -> bool:
        """Whether so much waits for the server already that it had better be told no more."""
        return self._link.connection.session.outgoing_count > WAITING

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Sends a notification, soon."""
        self._link.connection.notify(method, dict(params or {}))

    # Changes

    def changes(self, uris: Sequence[str] = (), *, lists: bool = True) -> Changes:
        """What changes from now on: the resources `uris` and what lies below them, and with `lists` the lists of
        tools, prompts and resources. After a reconnection a change `missed` says that any of it may have changed.

        Raises RuntimeError before the client is entered.
        """
        if self._tasks is None:
            raise RuntimeError("enter the client first: async with client")
        return Changes(self._link, self._tasks, uris, lists=lists)

    def _hear(self, notice: Notified | Gap, taken: bool) -> None:
        change = Change("missed") if isinstance(notice, Gap) else change_of(notice)
        if change is not None:
            self._cached.heard(change)
        if self._options.relay is not None:
            self._options.relay.heard(notice)
        elif not taken and isinstance(notice, Notified):
            self._handlers.take(notice)

    def _asked_back(self, method: str, params: Mapping[str, Any]) -> None:
        self._cached.asked_back(method, params)

    def _reopened(self) -> None:
        self._cached.heard(Change("missed"))
