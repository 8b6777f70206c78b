"""Lists that are too long to cache. The pages of one server follow those of the server before it, and each page is
fetched when a client requests it."""

from collections.abc import Callable, Sequence
from typing import Any

import anyio

from shared.errors import InputRequired, McpError, MethodNotFound
from shared.protocol.pagination import make_cursor, read_position
from shared.protocol.signing import Signer
from shared.protocol.types.tools import ListParams
from shared.server.dispatch.context import Context

from .list_cache import LISTING_SECONDS, cursor_in, fresh_ms_of
from .server import JoinedServer

OnPage = Callable[[JoinedServer, dict[str, Any]], None]


class PagedLists:
    """The lists of several servers, one after another. `on_page` is called with each page and its server, and may
    change the page."""

    def __init__(self, servers: Sequence[JoinedServer], on_page: OnPage) -> None:
        self._servers = servers
        self._on_page = on_page

    async def page(
        self, context: Context[Any], method: str, cursor: str | None, *, size: int, signer: Signer
    ) -> dict[str, Any]:
        """Fetch the page that begins at `cursor`: the next page of the server that the cursor names, and pages of the
        servers after it until there are `size` entries. A server that fails is left out.

        Raises InvalidParams for a cursor that was not issued for this list, MethodNotFound if no server has the
        method, and the last error if no server returns a page.
        """
        listed = context.peer.name_for_principal(method)
        name, part_cursor = read_position(cursor, name=listed, signer=signer) or ("", None)
        names = [server.name for server in self._servers]
        later = self._servers[names.index(name) if name in names else 0 :]
        supporting_servers = [(server, server.find_method(context, method)) for server in later]
        remaining = [(server, row) for server, row in supporting_servers if row is not None]
        result: dict[str, Any] | None = None
        failure: McpError = MethodNotFound(f"method not found: {method[:100]}")
        count = 0
        while remaining and count < size:
            server, row = remaining.pop(0)
            own_cursor = part_cursor if server.name == name else None
            try:
                with anyio.fail_after(LISTING_SECONDS):
                    page = dict(await server.ask(context, row, ListParams(cursor=own_cursor)))
            except TimeoutError:
                failure = server.timeout_error()
                continue
            except InputRequired:
                failure = server.unavailable_error(row.name)
                continue
            except McpError as error:
                failure = error
                continue
            self._on_page(server, page)
            following = cursor_in(page)
            page.pop("nextCursor", None)
            result = page if result is None else _join_pages(result, page)
            count = max((len(value) for value in result.values() if isinstance(value, list)), default=0)
            if following is not None:
                return {**result, "nextCursor": make_cursor([server.name, following], name=listed, signer=signer)}
        if result is None:
            raise failure
        if remaining:
            result["nextCursor"] = make_cursor([remaining[0][0].name, None], name=listed, signer=signer)
        return result


def _join_pages(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    joined = {**second, **first}
    for name, value in second.items():
        before = first.get(name)
        if isinstance(value, list) and isinstance(before, list):
            joined[name] = before + value
    if "ttlMs" in first or "ttlMs" in second:
        joined["ttlMs"] = min(fresh_ms_of(first), fresh_ms_of(second))
    if first.get("cacheScope") != second.get("cacheScope"):
        joined["cacheScope"] = "private"
    return joined
