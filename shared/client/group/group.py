"""A group of clients for a host with several servers, each isolated from the others.

    servers = {"files": ["mcp-bundle-filesystem", "."], "web": group_server("https://example.org/mcp", token=token)}
    async with ClientGroup(servers, permit=ask_the_user) as group:
        tools = await group.list_tools()
        result = await group.call_tool("files__read_text_file", {"path": "README.md"})

A slow or failing server does not affect the others: their items are returned, together with the failures.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
from anyio.abc import TaskGroup

from ...concurrency import AsyncContext, background
from ...errors import McpError
from ...protocol.types.prompts import GetPromptResult, Prompt
from ...protocol.types.resources import Resource, ResourceTemplate
from ...protocol.types.results import ReadResourceResult
from ...protocol.types.tools import CallToolResult, Tool
from ..approval import Permit, permit_as
from ..client import Client
from ..options import Progress
from ..tasks.tool_task import StartedTool
from .listing import PROMPTS, RESOURCES, TEMPLATES, TOOLS, Item, Listed, Listing, ListKind
from .member import GroupServer, Member, ServerStatus, group_server
from .names import check_server_name, may_be_shortened, own_name, split_name

ENTERING_SECONDS = 30.0
"""Seconds to wait for each server to be ready or to fail."""
LISTING_SECONDS = 10.0
CALL_SECONDS = 60.0
CLOSING_SECONDS = 10.0
"""Seconds for all servers together to end gracefully."""


class UnknownServer(McpError):
    """Raised if the group has no server with that name, or if a name of a tool or prompt contains no server's."""


class ClientGroup(AsyncContext):
    """Several servers, each with a name of letters, digits and hyphens. Any number of calls may run at once.

    `permit` decides about each act of every server, after the `permit` in the server's own options. With `retry`,
    failed servers are tried again, after pauses that get longer, up to 30 seconds. `on_status` receives each new
    status, and must neither block nor raise. Entering waits until each server is ready or has failed, but at most for
    `entering_seconds`; slower servers may still become ready later.
    """

    def __init__(
        self,
        servers: Mapping[str, GroupServer | str | Sequence[str]] | None = None,
        *,
        permit: Permit | None = None,
        retry: bool = False,
        on_status: Callable[[ServerStatus], None] | None = None,
        entering_seconds: float = ENTERING_SECONDS,
    ) -> None:
        """Raises ValueError for an invalid server name."""
        self._initial_servers = {check_server_name(name): server for name, server in (servers or {}).items()}
        self._permit = permit
        self._retry = retry
        self._on_status = on_status or (lambda status: None)
        self._entering_seconds = entering_seconds
        self._members: dict[str, Member] = {}
        self._tasks: TaskGroup | None = None

    @asynccontextmanager
    async def _lifespan(self) -> AsyncIterator[None]:
        async with background() as tasks:
            self._tasks = tasks
            try:
                await self._wait_settled(
                    [self._join(tasks, name, server) for name, server in self._initial_servers.items()]
                )
                yield
            finally:
                self._tasks = None
                await _close(self._members.values())

    # Servers

    @property
    def statuses(self) -> list[ServerStatus]:
        """The status of each server."""
        return [member.status for member in self._members.values()]

    def client(self, server: str) -> Client:
        """Return the client of a server, for calls that the group does not offer. After a failure of the server, this
        is a new client.

        Raises UnknownServer, and ConnectionError if the server is not ready.
        """
        return self._member(server).client

    async def add(self, name: str, server: GroupServer | str | Sequence[str]) -> ServerStatus:
        """Add a server, wait until it is ready or has failed, and return its status.

        Raises ValueError for a name that is taken or invalid, and RuntimeError if the group is not entered.
        """
        if check_server_name(name) in self._members:
            raise ValueError(f"there is already a server with that name: {name}")
        if self._tasks is None:
            raise RuntimeError("enter the group first: async with group")
        member = self._join(self._tasks, name, server)
        await self._wait_settled([member])
        return member.status

    async def remove(self, name: str) -> None:
        """Close the client of a server; its pending calls raise ConnectionError. Raises UnknownServer."""
        member = self._member(name)
        del self._members[name]
        await _close([member])

    def _join(self, tasks: TaskGroup, name: str, server: GroupServer | str | Sequence[str]) -> Member:
        server = server if isinstance(server, GroupServer) else group_server(server)
        options = replace(server.options, permit=permit_as(name, server.options.permit, self._permit))
        member = self._members[name] = Member(name, server, options, self._on_status)

        async def run() -> None:
            await member.run(retry=self._retry)

        tasks.start_soon(run)
        return member

    async def _wait_settled(self, members: Iterable[Member]) -> None:
        with anyio.move_on_after(self._entering_seconds):
            for member in members:
                await member.settled.wait()

    def _member(self, name: str) -> Member:
        if name not in self._members:
            raise UnknownServer(f"no server named {name[:100]!r}; available: {', '.join(self._members) or 'none'}")
        return self._members[name]

    # Calls

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = CALL_SECONDS,  # noqa: ASYNC109 - part of the interface
        on_progress: Progress | None = None,
    ) -> CallToolResult:
        """Call the tool with a name from `list_tools`, and return its result. Raises UnknownServer, ConnectionError
        if the server is not ready, and the same errors as `Client.call_tool`."""
        member, item_name = await self._resolve(name, TOOLS, timeout)
        return await member.client.call_tool(item_name, arguments, timeout=timeout, on_progress=on_progress)

    async def start_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = CALL_SECONDS,  # noqa: ASYNC109 - part of the interface
    ) -> StartedTool:
        """Start the tool with a name from `list_tools`, like `Client.start_tool`. Raises the same errors as
        `call_tool`."""
        member, item_name = await self._resolve(name, TOOLS, timeout)
        return await member.client.start_tool(item_name, arguments, timeout=timeout)

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        timeout: float | None = CALL_SECONDS,  # noqa: ASYNC109 - part of the interface
    ) -> GetPromptResult:
        """Return the rendered prompt with a name from `list_prompts`. Raises the same errors as `call_tool`."""
        member, item_name = await self._resolve(name, PROMPTS, timeout)
        return await member.client.get_prompt(item_name, arguments, timeout=timeout)

    async def read_resource(
        self,
        server: str,
        uri: str,
        *,
        timeout: float | None = CALL_SECONDS,  # noqa: ASYNC109 - part of the interface
    ) -> ReadResourceResult:
        """Return the contents of a resource of `server`; on another server, the same URI may identify another
        resource. Raises the same errors as `call_tool`."""
        return await self._member(server).client.read_resource(uri, timeout=timeout)

    async def _resolve(self, name: str, kind: ListKind[Any], seconds: float | None) -> tuple[Member, str]:
        try:
            server, rest = split_name(name)
        except ValueError as error:
            raise UnknownServer(str(error)) from None
        member = self._member(server)
        # Usually the rest is the item's own name; only a name that may have been shortened is looked up in the list.
        if not may_be_shortened(rest):
            return member, rest
        item_name = own_name(name, member.names.get(kind.capability, ()))
        if item_name is None:
            with anyio.move_on_after(seconds) as timeout_scope:
                await kind.items(member)
            if timeout_scope.cancelled_caught:
                raise TimeoutError(f"{server} did not list its {kind.plural} within {seconds:g} s")
            item_name = own_name(name, member.names.get(kind.capability, ()))
        return member, rest if item_name is None else item_name

    # Lists

    async def list_tools(self, *, seconds: float = LISTING_SECONDS) -> Listing[Tool]:
        """Return the tools of all servers that have listed them within `seconds`."""
        return await self._collect(TOOLS, seconds)

    async def list_prompts(self, *, seconds: float = LISTING_SECONDS) -> Listing[Prompt]:
        """Return the prompts of all servers that have listed them within `seconds`."""
        return await self._collect(PROMPTS, seconds)

    async def list_resources(self, *, seconds: float = LISTING_SECONDS) -> Listing[Resource]:
        """Return the resources of all servers that have listed them within `seconds`."""
        return await self._collect(RESOURCES, seconds)

    async def list_resource_templates(self, *, seconds: float = LISTING_SECONDS) -> Listing[ResourceTemplate]:
        """Return the resource templates of all servers that have listed them within `seconds`."""
        return await self._collect(TEMPLATES, seconds)

    async def _collect(self, kind: ListKind[Item], seconds: float) -> Listing[Item]:
        lists: dict[str, list[Listed[Item]]] = {}
        failures: dict[str, Exception] = {}

        async def list_items(name: str, member: Member) -> None:
            # Set first, and removed after a success: when the time is up, the code below is cancelled.
            failures[name] = TimeoutError(f"{name} did not list its {kind.plural} within {seconds:g} s")
            with anyio.move_on_after(seconds):
                try:
                    lists[name] = [kind.listed(name, item) for item in await kind.items(member)]
                    del failures[name]
                except (McpError, OSError) as error:
                    failures[name] = error

        members = dict(self._members)
        async with anyio.create_task_group() as tasks:
            for name, member in members.items():
                tasks.start_soon(list_items, name, member)
        items = [entry for name in members for entry in lists.get(name, ())]
        return Listing(items, {name: failures[name] for name in members if name in failures})


async def _close(members: Iterable[Member]) -> None:
    """Close all members at the same time, and cancel those that take too long."""
    members = list(members)
    with anyio.CancelScope(shield=True):
        for member in members:
            member.begin_close()
        with anyio.move_on_after(CLOSING_SECONDS):
            for member in members:
                await member.closed.wait()
        for member in members:
            member.cancel()
        for member in members:
            await member.closed.wait()
