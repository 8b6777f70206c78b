"""Finds the server that owns a resource. The gateway changes a URI only if several servers have it, so most URIs do
not name their server. The owner of such a URI is the first of these:

1. a server in this process that declares the resource
2. one of the bundle's own servers: one whose tools name it as a UI resource, else one that lists it, else one with a
   matching template
3. a third-party server, by the same criteria
4. any other server with resources

The servers of 1 to 3 are asked in this order until one answers with anything but "not found". The servers of 4 are
only guesses: they are asked in turn until one succeeds. If two servers list the same URI, it belongs to the first
one; the resource of the other one is listed with the name of its server in the URI.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

import anyio

from shared.errors import InsufficientScope, InvalidParams, McpError, ResourceNotFound, RpcError
from shared.server.dispatch.context import Context

from .directory import Directory, EntryLocation, matches_template
from .list_cache import TEMPLATES
from .server import JoinedServer, requesting_server, unavailability_note
from .uris import qualified_uri, rename_uris, split_uri

Result = TypeVar("Result")
Value = TypeVar("Value")

MAX_REMEMBERED_URIS = 10_000
MAX_URI_LENGTH = 8_192
"""Maximum length of a URI that is stored, in characters."""
GUESS_SECONDS = 5.0
"""Maximum number of seconds to wait for a server that is only a guess before the next one is asked."""
_NOT_FOUND = -32002

# Ranks of a server's claim to a URI; the server with the lowest rank is asked first. Third-party servers get the
# offset added, since they may list any URI.
_DECLARED, _UI_RESOURCE, _LISTED, _TEMPLATE = range(4)
_THIRD_PARTY_OFFSET = 4


def _has_resources(server: JoinedServer) -> bool:
    return server.has_capability("resources")


class Owners:
    """The known owners of resources."""

    def __init__(
        self,
        servers: Sequence[JoinedServer],
        directory: Directory,
        tool_directory_for: Callable[[Context[Any]], Directory],
    ) -> None:
        """`directory` has the resource templates; `tool_directory_for` returns the directory of the tools that a
        client sees."""
        self._servers = servers
        self._directory = directory
        self._tool_directory_for = tool_directory_for
        self._listed: dict[JoinedServer, OrderedDict[str, None]] = {server: OrderedDict() for server in servers}
        self._guessed: OrderedDict[str, JoinedServer] = OrderedDict()
        """By URI, the server that a guess has shown to have the resource."""
        self._servers_by_name = {server.name: server for server in servers}

    def forget(self, server: JoinedServer) -> None:
        """Forget which resources `server` lists, after they have changed."""
        self._listed[server].clear()
        self._guessed.clear()

    def learn(self, server: JoinedServer, entries: Iterable[Any]) -> None:
        """Store the resources that `server` lists."""
        for entry in entries:
            _store(self._listed[server], entry["uri"], None)

    def client_uri(self, server: JoinedServer, uri: str) -> str:
        """Return the URI under which clients see the resource of `server` at `uri`. It contains the name of the
        server if another server owns the plain URI."""
        if split_uri(uri)[0] in self._servers_by_name or self._directory.has_renamed_template(server, uri):
            return qualified_uri(server.name, uri)
        owner = next((other for other in self._servers if other.declares(uri)), None)
        owner = owner or next((other for other in self._servers if uri in self._listed[other]), server)
        return uri if owner is server else qualified_uri(server.name, uri)

    def with_client_uris(self, server: JoinedServer, result: dict[str, Any]) -> dict[str, Any]:
        """Return a result of `server` with the URIs under which clients see its resources."""
        return rename_uris(result, partial(self.client_uri, server))

    async def first_result(
        self,
        context: Context[Any],
        uri: str,
        send_request: Callable[[JoinedServer, str], Awaitable[Result]],
        *,
        can_serve: Callable[[JoinedServer], bool] = _has_resources,
    ) -> Result:
        """Return the result of `send_request`, which is called with the server that owns the resource at `uri`, and
        with the URI that this server uses for it. Servers for which `can_serve` returns False are left out.

        Raises the owner's error. If no owner is known, raises the first error other than "not found", or else
        ResourceNotFound.
        """
        name, uri_at_server = split_uri(uri)
        requester = requesting_server(context.call.round)
        if requester is not None:
            if requester not in self._servers_by_name:
                raise InvalidParams("the server that asked is no longer available")
            return await send_request(self._servers_by_name[requester], uri_at_server if name == requester else uri)
        if name in self._servers_by_name:
            return await send_request(self._servers_by_name[name], uri_at_server)
        claimants = await self._find_claimants(context, uri)
        not_found_errors: list[str] = []
        # A closed server is asked too: its error is better than an answer of another server.
        for server in [server for server in claimants if server.running is None or can_serve(server)]:
            try:
                return await send_request(server, uri)
            except McpError as error:
                if not _is_not_found(error):
                    raise
                not_found_errors.append(str(error))
        others = [server for server in self._servers if can_serve(server) and server not in claimants]
        return await self._guess(uri, others, send_request, not_found_errors)

    async def find_template(self, context: Context[Any], uri: str) -> EntryLocation | None:
        """Return the location of the template, or of the resource, that clients see as `uri`; None if no server is
        known to have it."""
        await self._directory.entries(TEMPLATES, context)
        location = self._directory.find_known(TEMPLATES, uri, context)
        if location is not None and location.server.running is not None:
            return location
        name, uri_at_server = split_uri(uri)
        if name in self._servers_by_name:
            return EntryLocation(self._servers_by_name[name], uri_at_server)
        return next(
            (
                EntryLocation(server, uri)
                for server in await self._find_claimants(context, uri)
                if _has_resources(server)
            ),
            None,
        )

    async def _guess(
        self,
        uri: str,
        servers: Sequence[JoinedServer],
        send_request: Callable[[JoinedServer, str], Awaitable[Result]],
        not_found_errors: list[str],
    ) -> Result:
        """Return the first successful result from `servers`, which may have the resource. Raises the same errors as
        `first_result`. `not_found_errors` are the messages of servers that were asked before."""
        failure: McpError | None = None
        servers = sorted(servers, key=lambda server: server is not self._guessed.get(uri))
        for server in servers:
            try:
                # The last server needs no timeout, because no other waits for it.
                with anyio.fail_after(GUESS_SECONDS if server is not servers[-1] else None):
                    result = await send_request(server, uri)
            except TimeoutError:
                failure = failure or server.timeout_error()
            except McpError as error:
                # InsufficientScope does not show that this server, which is only a guess, has the resource.
                if _is_not_found(error) or isinstance(error, InsufficientScope):
                    not_found_errors.append(str(error) if _is_not_found(error) else "resource not found")
                else:
                    failure = failure or error
            else:
                _store(self._guessed, uri, server)
                return result
        self._guessed.pop(uri, None)
        raise failure or ResourceNotFound(
            uri, next(iter(not_found_errors), "resource not found") + unavailability_note(self._servers)
        )

    async def _find_claimants(self, context: Context[Any], uri: str) -> list[JoinedServer]:
        """Return the servers that may own the resource at `uri`, the most likely owner first."""
        ranks: dict[JoinedServer, int] = {}
        for server in self._servers:
            if server.declares(uri):
                ranks[server] = _DECLARED
            elif uri in self._listed[server]:
                ranks[server] = _LISTED
        for server, listing in await self._directory.entries(TEMPLATES, context):
            if any(matches_template(entry["uriTemplate"], uri) for entry in listing.entries):
                ranks.setdefault(server, _TEMPLATE)
        ui_owner = self._tool_directory_for(context).ui_owner(uri, context)
        if ui_owner is not None:
            ranks[ui_owner] = min(ranks.get(ui_owner, _UI_RESOURCE), _UI_RESOURCE)
        return sorted(ranks, key=lambda server: ranks[server] + _THIRD_PARTY_OFFSET * server.is_third_party)


def _store(cache: OrderedDict[str, Value], uri: str, value: Value) -> None:
    if len(uri) <= MAX_URI_LENGTH:
        cache[uri] = value
        cache.move_to_end(uri)
        if len(cache) > MAX_REMEMBERED_URIS:
            cache.popitem(last=False)


def _is_not_found(error: McpError) -> bool:
    """Return True if the error means that the resource does not exist. Third-party servers send the code of their
    protocol version."""
    if isinstance(error, ResourceNotFound):
        return True
    if not isinstance(error, RpcError):
        return False
    # Versions up to 2025-11-25 have a separate code; 2026-07-28 uses that of invalid params, with a URI in the data.
    return error.code == _NOT_FOUND or (
        error.code == InvalidParams.code and isinstance(error.data, dict) and "uri" in error.data
    )
