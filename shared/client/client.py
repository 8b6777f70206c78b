"""The client of an MCP server, in either era.

    async with connect_stdio(["mcp-bundle-filesystem", "."]) as client:
        tools = await client.list_tools()
        result = await client.call_tool("read_text_file", {"path": "README.md"})

Params and results of `request`, `notify` and `raw` are dictionaries, as on the wire.
"""

from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from anyio.abc import TaskGroup

from ..concurrency import AsyncContext
from ..contracts import ClosableTransport
from ..errors import InternalError, McpError
from ..protocol.session.client import ClientSession, first_version
from ..protocol.session.client_events import InputWanted, Notified
from ..protocol.session.descriptions import ServerDescription
from ..protocol.types.client import LogLevel
from ..protocol.types.tools import CallToolResult
from ..protocol.wire.jsonrpc import Gap
from .approval import act_of
from .cache import ResponseCache
from .calls.cached import CachedRequests
from .calls.handlers import Handlers
from .calls.raw_calls import RawCalls
from .calls.requests import Requests
from .calls.typed_calls import DEFAULT_TIMEOUT, TypedCalls
from .connection.changes import Change, Changes
from .connection.connection import Connection
from .connection.link import Link
from .connection.restart import Start
from .connection.subscription import change_of
from .options import ClientOptions, Handler, Progress
from .relay import Caller
from .tasks.following import OnTask
from .tasks.own_tasks import ClientSideTasks
from .tasks.tool_task import StartedTool

MAX_WAITING = 1_000
"""If more messages than this wait for a slow server, messages that may be lost should be dropped."""


class Client(TypedCalls, AsyncContext):
    """A client of one server, from the opening of the session to its end. Any number of calls may run at once.

    Entering it raises PeerError if the server refuses the session, ConnectionError if the server has disconnected or
    supports no common protocol version, and TimeoutError if it does not answer.
    """

    def __init__(
        self, transport: ClosableTransport, options: ClientOptions | None = None, *, reopen: Start | None = None
    ) -> None:
        """`reopen` opens another transport to the same server when the connection is lost; None not to reopen it.

        Raises ValueError for an unknown mode or version, and if no version is allowed by both.
        """
        self._options = options or ClientOptions()
        self._handlers = Handlers(self._options)
        self._client_side_tasks = ClientSideTasks(self._get_task_group, lambda: self.server.supports_task_requests)
        self._tasks: TaskGroup | None = None
        self._link = Link(transport, self._options, self._connect, reopen, self._on_reopened)
        self._requests = Requests(self._link, self._handlers, self._on_input_required)
        cache = ResponseCache(self._options.cache_bytes) if self._options.cache is None else self._options.cache
        self._cached = CachedRequests(self._requests, cache, server=self._options.cache_key)
        super().__init__(
            self._request_cached,
            check_arguments=self._options.check_arguments,
            supports_output_schemas=lambda: self.server.supports_output_schemas,
            forget_results=self._cached.forget_results,
        )
        self.raw = RawCalls(self.request)
        """The calls whose results are dictionaries, as received."""

    @asynccontextmanager
    async def _lifespan(self) -> AsyncIterator[None]:
        try:
            async with self._link.run() as self._tasks:
                yield
        finally:
            self._cached.on_close()

    @property
    def server(self) -> ServerDescription:
        """The server's description of itself, as last received. Raises RuntimeError if the client is not entered
        yet."""
        server = self._link.connection.session.server
        if server is None:
            raise RuntimeError("enter the client first: async with client")
        return server

    @property
    def stateless(self) -> bool:
        """True if the session is in the stateless era."""
        return self._link.connection.session.stateless

    @property
    def connected(self) -> bool:
        """True if requests can be made, now or after the connection is reopened."""
        return self._link.is_usable

    async def ended(self) -> None:
        """Wait until requests can't be made any more: the connection is lost for good, or the client is closed."""
        await self._link.ended()

    def _connect(self, transport: ClosableTransport, mode: str) -> Connection:
        accepted = self._options.accepted_versions()
        session = ClientSession(self._options.identity(), first_version(mode, accepted), accepted)
        answers: Mapping[str, Handler] = self._handlers.input_handlers
        handlers = {method: self._with_permission(method, handler) for method, handler in answers.items()}
        if self._options.tasks and self._options.relay is None:
            # The callers of a relay handle tasks themselves.
            handlers = self._client_side_tasks.handlers(handlers)
        return Connection(transport, session, handlers, self._on_message, self._options.relay)

    def _get_task_group(self) -> TaskGroup:
        if self._tasks is None:
            raise InternalError("the client is not open yet")
        return self._tasks

    # Permission of the host

    async def _require_permission(self, method: str, params: Mapping[str, Any]) -> None:
        permit = self._options.permit
        if permit is None:
            return
        server = self._link.connection.session.server
        name = "" if server is None else str(server.info.get("name", ""))
        act = act_of(name, method, params)
        if act is not None:
            await permit(act)

    def _with_permission(self, method: str, handler: Handler) -> Handler:
        async def handle(params: dict[str, Any]) -> dict[str, Any]:
            self._cached.on_server_request()
            await self._require_permission(method, params)
            return await handler(params)

        return handle

    # Requests

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = 60,  # noqa: ASYNC109 - part of the interface
        on_progress: Progress | None = None,
        on_task: OnTask | None = None,
    ) -> dict[str, Any]:
        """Make any request and return its result. If the server answers with input requests, the handlers answer
        them, and the request is repeated with their answers, in up to 10 rounds.

        A lost connection is reopened first, if reconnection is enabled. A failed request is repeated, up to 4 times
        in all, if it did not reach the server, or if it is safe to repeat. If the server refuses a call because a
        header that must repeat an argument is missing, the tools are listed and the call is repeated once. A call
        that the server turns into a task is followed to its end, however long that takes; `on_task` receives the
        states of the task. Without `on_task`, `on_progress` receives the status messages of a task of 2026-07-28. The
        progress is then the percentage at the end of the message, or else the last progress.

        Raises PeerError for an error answer; TimeoutError if a round takes longer than `timeout` seconds, which
        include repetitions but not the time that the handlers need; ConnectionError if the connection is lost;
        McpError for undeclared or endless input requests; TaskLost for a task that the server no longer knows; and
        the errors raised by the option `permit`, such as Denied. A request that times out or is cancelled is also
        cancelled on the server.
        """
        await self._require_permission(method, params or {})
        return await self._requests(method, params, timeout=timeout, on_progress=on_progress, on_task=on_task)

    async def start_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        retention_seconds: float | None = None,
        timeout: float | None = DEFAULT_TIMEOUT,  # noqa: ASYNC109 - part of the interface
    ) -> StartedTool:
        """Call a tool, without waiting for its result if the server makes the call a task. A server of 2026-07-28
        decides by itself whether it does that, and how long it retains the task and its result. A server of
        2025-11-25 is asked for a task if the tool supports tasks, and to retain the task for `retention_seconds`; the
        server may choose another time.

        Input requests that arrive before the task exists are answered before this method returns. Raises the same
        errors as `call_tool`.
        """
        params = await self._prepare_call(name, arguments, timeout)
        await self._require_permission("tools/call", params)
        task: dict[str, Any] | None = None
        if await self._requests.find_task_support(params, timeout) in ("optional", "required"):
            task = {} if retention_seconds is None else {"ttl": int(retention_seconds * 1_000)}
        immediate_result, state = await self._requests.begin_call(params, timeout, task)
        if state is None:
            return self._started_tool({"tool": name, "result": immediate_result}, timeout)
        return self._started_tool({"tool": name, "taskId": state.id}, timeout)

    def resume_tool(self, saved: Mapping[str, Any], *, timeout: float | None = DEFAULT_TIMEOUT) -> StartedTool:
        """Resume a tool call that was started earlier, by this client or another client of the same server and user.
        `saved` is what `StartedTool.saved` returned. Raises ValueError for any other value."""
        id_, immediate_result = saved.get("taskId"), saved.get("result")
        if not isinstance(id_, str) and not isinstance(immediate_result, dict):
            raise ValueError("this is not a handle that saved() returned")
        return self._started_tool(saved, timeout)

    def _started_tool(self, saved: Mapping[str, Any], timeout_seconds: float | None) -> StartedTool:
        def read(name: str, result: dict[str, Any]) -> Awaitable[CallToolResult]:
            return self._read_call_result(name, result, timeout_seconds)

        channel = self._requests.task_channel(timeout_seconds)
        tool, id_ = str(saved.get("tool", "")), saved.get("taskId")
        return StartedTool(tool, channel, read, id=id_, immediate_result=saved.get("result"))

    async def exchange(
        self,
        method: str,
        params: Mapping[str, Any],
        caller: Caller,
        *,
        timeout: float | None = 60,  # noqa: ASYNC109 - part of the interface
    ) -> dict[str, Any] | InputWanted:
        """Make one round of a request on behalf of `caller`, and return its result, or the server's input requests.
        If it fails, it is repeated under the same rules as in `request`. The host is not asked for permission.

        Raises PeerError, TimeoutError and ConnectionError like `request`.
        """
        return await self._requests.exchange(method, dict(params), caller, timeout)

    async def _request_cached(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = 60,  # noqa: ASYNC109 - part of the interface
        on_progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Make a request whose result may come from the cache."""
        # A result from the cache needs permission, too.
        await self._require_permission(method, params or {})
        return await self._cached(method, params, timeout=timeout, on_progress=on_progress)

    async def ping(self) -> None:
        """Wait for an answer from the server; in protocol versions without a ping, `server/discover` is used.

        Raises the same errors as `request`.
        """
        await self.request("server/discover" if self.stateless else "ping")

    async def set_log_level(self, level: LogLevel) -> None:
        """Ask the server to send log messages of at least this severity from now on.

        Raises the same errors as `request`, and McpError if a server of the handshake era did not declare logging.
        """
        if not self.stateless and not self.server.can("logging"):
            raise McpError("the server does not declare the logging capability")
        # The level also applies to later connections.
        self._options = self._link.options = replace(self._options, log_level=level)
        self._link.connection.session.log_level(level)
        if not self.stateless:
            await self.request("logging/setLevel", {"level": level})

    def roots_changed(self) -> None:
        """Notify the server that the roots have changed. In the stateless era nothing is sent: the server asks for
        the roots with every call."""
        if not self.stateless:
            self.notify("notifications/roots/list_changed")

    @property
    def is_behind(self) -> bool:
        """True if so many messages wait for the server that messages that may be lost should be dropped."""
        return self._link.connection.session.outgoing_count > MAX_WAITING

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification without waiting."""
        self._link.connection.notify(method, dict(params or {}))

    # Changes

    def changes(self, uris: str | Sequence[str] = (), *, lists: bool = True) -> Changes:
        """Return an iterator over changes of the resources `uris`, of resources below them, and, with `lists`, of the
        lists of tools, prompts and resources. After a reconnection, it yields a change of kind `missed`, which means
        that anything may have changed.

        Raises RuntimeError if the client is not entered yet.
        """
        if self._tasks is None:
            raise RuntimeError("enter the client first: async with client")
        return Changes(self._link, self._tasks, [uris] if isinstance(uris, str) else uris, lists=lists)

    def _on_message(self, notification: Notified | Gap, is_handled: bool) -> None:
        change = Change("missed") if isinstance(notification, Gap) else change_of(notification)
        if change is not None:
            self._cached.on_change(change)
        if self._options.relay is not None:
            self._options.relay.on_server_message(notification)
        elif not is_handled and isinstance(notification, Notified):
            self._handlers.on_notification(notification)

    def _on_input_required(self, method: str, params: Mapping[str, Any]) -> None:
        self._cached.on_input_required(method, params)

    def _on_reopened(self) -> None:
        self._cached.on_change(Change("missed"))
