"""Owners of resources. A URI stays unchanged while only one server has it, so the owner must be found among them, in
this order:

1. the server that declares it
2. the bundle's own servers: one whose tools refer to it as a page, one that lists it, one with a matching template
3. third-party servers, by the same criteria
4. all other servers with resources, in their order

For the first three, the first match answers, whatever the answer is; for the last, the first answer that is not an
error. A URI that two of them list belongs to the first; the resource of the other is listed with the name of its
server in its URI.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

import anyio

from shared.errors import InsufficientScope, InvalidParams, McpError, ResourceNotFound, RpcError
from shared.server.dispatch.context import Context

from .directory import Directory, EntryPlace, fits
from .list_cache import TEMPLATES
from .server import Part, absence_note, asking_server
from .uris import full_uri, rename_uris, split_uri

Result = TypeVar("Result")
Value = TypeVar("Value")

MAX_KNOWN = 10_000
MAX_URI_LENGTH = 8_192
"""Maximum length of a URI that is remembered, in characters."""
GUESS_SECONDS = 5.0
"""Maximum number of seconds by which a server that may not have the resource delays those after it."""
_NOT_FOUND = -32002

# The rank of a server's claim to a URI. Third-party servers rank lower: they may list any URI.
_DECLARED, _PAGE, _LISTED, _TEMPLATE, _FOREIGN = range(5)


def _has_resources(part: Part) -> bool:
    return part.has("resources")


class Owners:
    """The known owners of resources."""

    def __init__(
        self, parts: Sequence[Part], directory: Directory, tools_of: Callable[[Context[Any]], Directory]
    ) -> None:
        """`directory` has the templates; `tools_of` returns the directory of tools that a client sees."""
        self._parts = parts
        self._directory = directory
        self._tools_of = tools_of
        self._listed: dict[Part, OrderedDict[str, None]] = {part: OrderedDict() for part in parts}
        self._guessed: OrderedDict[str, Part] = OrderedDict()
        """The server that answered when no owner was known."""
        self._names = {part.name: part for part in parts}

    def forget(self, part: Part) -> None:
        """Forget the resources of `part` after they have changed."""
        self._listed[part].clear()
        self._guessed.clear()

    def learn(self, part: Part, entries: Iterable[Any]) -> None:
        """Store the resources that `part` lists."""
        for entry in entries:
            _remember(self._listed[part], entry["uri"], None)

    def shown_uri(self, part: Part, uri: str) -> str:
        """Return the URI under which clients know the resource of `part` at `uri`: with the name of its server if the
        plain URI would belong to another."""
        if split_uri(uri)[0] in self._names or self._directory.has_full_template(part, uri):
            return full_uri(part.name, uri)
        owner = next((other for other in self._parts if other.declares(uri)), None)
        owner = owner or next((other for other in self._parts if uri in self._listed[other]), part)
        return uri if owner is part else full_uri(part.name, uri)

    def show_uris(self, part: Part, result: dict[str, Any]) -> dict[str, Any]:
        """Return a result of `part` with the URIs of resources that clients know."""
        return rename_uris(result, partial(self.shown_uri, part))

    async def first_result(
        self,
        context: Context[Any],
        uri: str,
        attempt: Callable[[Part, str], Awaitable[Result]],
        *,
        serving: Callable[[Part], bool] = _has_resources,
    ) -> Result:
        """Return the result of `attempt` for the owner of `uri`, called with the owner, which is one of the parts
        that are `serving`, and the URI that the resource has there.

        Raises ResourceNotFound if no server has it, the error of the owner, or, if no owner is known, the first error
        other than "not found".
        """
        name, own = split_uri(uri)
        asker = asking_server(context.call.round)
        if asker is not None:
            if asker not in self._names:
                raise InvalidParams("the server that asked is no longer available")
            return await attempt(self._names[asker], own if name == asker else uri)
        if name in self._names:
            return await attempt(self._names[name], own)
        claimants = await self._find_claimants(context, uri)
        missing: list[str] = []
        # No other server answers for one that is closed.
        for part in [part for part in claimants if part.running is None or serving(part)]:
            try:
                return await attempt(part, uri)
            except McpError as error:
                if not _is_missing(error):
                    raise
                missing.append(str(error))
        others = [part for part in self._parts if serving(part) and part not in claimants]
        return await self._guess(uri, others, attempt, missing)

    async def find_template(self, context: Context[Any], uri: str) -> EntryPlace | None:
        """Return the server of the template, or of the resource, that clients know as `uri`; None if no server is
        known to have it."""
        await self._directory.entries(TEMPLATES, context)
        place = self._directory.find_known(TEMPLATES, uri, context)
        if place is not None and place.part.running is not None:
            return place
        name, own = split_uri(uri)
        if name in self._names:
            return EntryPlace(self._names[name], own)
        return next(
            (EntryPlace(part, uri) for part in await self._find_claimants(context, uri) if _has_resources(part)), None
        )

    async def _guess(
        self, uri: str, parts: Sequence[Part], attempt: Callable[[Part, str], Awaitable[Result]], missing: list[str]
    ) -> Result:
        """Return the first successful result from `parts`. Raises like `first_result`. `missing` are the "not found"
        errors of other servers."""
        failure: McpError | None = None
        parts = sorted(parts, key=lambda part: part is not self._guessed.get(uri))
        for part in parts:
            try:
                # No server comes after the last one.
                with anyio.fail_after(GUESS_SECONDS if part is not parts[-1] else None):
                    result = await attempt(part, uri)
            except TimeoutError:
                failure = failure or part.timeout_error()
            except McpError as error:
                # A request for another scope does not show that the resource exists, since the server is only a
                # guess.
                if _is_missing(error) or isinstance(error, InsufficientScope):
                    missing.append(str(error) if _is_missing(error) else "resource not found")
                else:
                    failure = failure or error
            else:
                _remember(self._guessed, uri, part)
                return result
        self._guessed.pop(uri, None)
        raise failure or ResourceNotFound(uri, next(iter(missing), "resource not found") + absence_note(self._parts))

    async def _find_claimants(self, context: Context[Any], uri: str) -> list[Part]:
        """Return the servers that may own it, most likely first."""
        ranks: dict[Part, int] = {}
        for part in self._parts:
            if part.declares(uri):
                ranks[part] = _DECLARED
            elif uri in self._listed[part]:
                ranks[part] = _LISTED
        for part, listing in await self._directory.entries(TEMPLATES, context):
            if any(fits(entry["uriTemplate"], uri) for entry in listing.entries):
                ranks.setdefault(part, _TEMPLATE)
        page_owner = self._tools_of(context).page_owner(uri, context)
        if page_owner is not None:
            ranks[page_owner] = min(ranks.get(page_owner, _PAGE), _PAGE)
        return sorted(ranks, key=lambda part: ranks[part] + _FOREIGN * part.is_foreign)


def _remember(cache: OrderedDict[str, Value], uri: str, value: Value) -> None:
    if len(uri) <= MAX_URI_LENGTH:
        cache[uri] = value
        cache.move_to_end(uri)
        if len(cache) > MAX_KNOWN:
            cache.popitem(last=False)


def _is_missing(error: McpError) -> bool:
    """Return True if the error means "no such resource". Third-party servers express it as in their version."""
    if isinstance(error, ResourceNotFound):
        return True
    if not isinstance(error, RpcError):
        return False
    # Up to 2025-11-25 the code expresses it, since 2026-07-28 the data of a more general error.
    return error.code == _NOT_FOUND or (
        error.code == InvalidParams.code and isinstance(error.data, dict) and "uri" in error.data
    )
