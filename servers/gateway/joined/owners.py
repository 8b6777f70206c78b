"""Whose a resource is. URIs stay what they are as far as they are one server's, so their owner is looked for:

1. where it is declared
2. at our own servers where a tool names it as its page, where it is listed, or where a template fits it
3. at those of others likewise
4. at all others that have resources, in their order

Of the first three kinds the first that knows it answers, whatever that is; of the last the first that has an answer
which is no error. What two of them list is the first one's, and that of the other has the name of its server in it,
by which it is found from then on.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

import anyio

from shared.errors import InsufficientScope, InvalidParams, McpError, ResourceNotFound, RpcError
from shared.server.dispatch.context import Context

from .directory import Directory, Place, fits
from .list_cache import TEMPLATES
from .part import Part, absent, asked_by
from .uris import full_uri, split_uri, with_uris

Result = TypeVar("Result")
Value = TypeVar("Value")

MAX_KNOWN = 10_000
LONGEST_KNOWN = 8_192
"""Characters of a URI that is remembered."""
GUESS_SECONDS = 5.0
"""How long a server that may know nothing of a resource makes those behind it wait."""
_NOT_FOUND = -32002

# How good the claim of a server to a URI is. Those of others have worse ones: they may list what they like.
_DECLARED, _PAGE, _LISTED, _TEMPLATE, _FOREIGN = range(5)


def _has_resources(part: Part) -> bool:
    return part.has("resources")


class Owners:
    """The owners of resources, as far as they are known."""

    def __init__(
        self, parts: Sequence[Part], directory: Directory, tools_of: Callable[[Context[Any]], Directory]
    ) -> None:
        """`directory` has the templates; `tools_of` is where the tools stand as a client is told them."""
        self._parts = parts
        self._directory = directory
        self._tools_of = tools_of
        self._listed: dict[Part, OrderedDict[str, None]] = {part: OrderedDict() for part in parts}
        self._guessed: OrderedDict[str, Part] = OrderedDict()
        """Who had an answer where nobody was known to be the owner."""
        self._names = {part.name: part for part in parts}

    def forget(self, part: Part) -> None:
        """Resources of `part` have come or gone."""
        self._listed[part].clear()
        self._guessed.clear()

    def learn(self, part: Part, entries: Iterable[Any]) -> None:
        """`part` lists these resources."""
        for entry in entries:
            _remember(self._listed[part], entry["uri"], None)

    def shown(self, part: Part, uri: str) -> str:
        """By which URI clients know what `part` has at `uri`: with the name of its server where it would be
        another's without."""
        if split_uri(uri)[0] in self._names or self._directory.has_full_template(part, uri):
            return full_uri(part.name, uri)
        owner = next((one for one in self._parts if one.declares(uri)), None)
        owner = owner or next((one for one in self._parts if uri in self._listed[one]), part)
        return uri if owner is part else full_uri(part.name, uri)

    def told(self, part: Part, result: dict[str, Any]) -> dict[str, Any]:
        """A result of `part`, in which resources have the URIs that clients know."""
        return with_uris(result, partial(self.shown, part))

    async def first(
        self,
        context: Context[Any],
        uri: str,
        attempt: Callable[[Part, str], Awaitable[Result]],
        *,
        serving: Callable[[Part], bool] = _has_resources,
    ) -> Result:
        """What `attempt` gives for the owner of `uri`, which is one of those that are `serving`, and the URI that it
        has there.

        Raises ResourceNotFound where nobody has it, what the owner raises, and where nobody is known to be that what
        the first raises that knows more than that it has none.
        """
        name, own = split_uri(uri)
        asked = asked_by(context.call.round)
        if asked is not None:
            return await attempt(self._named(asked), own if name == asked else uri)
        if name in self._names:
            return await attempt(self._names[name], own)
        claiming = await self._claiming(context, uri)
        missing: list[str] = []
        # Nobody else answers in the place of one that is closed.
        for part in [part for part in claiming if part.running is None or serving(part)]:
            try:
                return await attempt(part, uri)
            except McpError as error:
                if not _is_missing(error):
                    raise
                missing.append(str(error))
        others = [part for part in self._parts if serving(part) and part not in claiming]
        return await self._guess(uri, others, attempt, missing)

    async def of_template(self, context: Context[Any], uri: str) -> Place | None:
        """Whose the template is that clients know as `uri`, or the resource at it; None where nobody is known to have
        it."""
        await self._directory.entries(TEMPLATES, context)
        place = self._directory.known(TEMPLATES, uri, context)
        if place is not None and place.part.running is not None:
            return place
        name, own = split_uri(uri)
        if name in self._names:
            return Place(self._names[name], own)
        return next((Place(part, uri) for part in await self._claiming(context, uri) if _has_resources(part)), None)

    async def _guess(
        self, uri: str, parts: Sequence[Part], attempt: Callable[[Part, str], Awaitable[Result]], missing: list[str]
    ) -> Result:
        """What the first of `parts` gives that has an answer. Raises as `first` does; it is `missing` at others."""
        failure: McpError | None = None
        parts = sorted(parts, key=lambda part: part is not self._guessed.get(uri))
        for part in parts:
            try:
                # Nobody waits behind the last one.
                with anyio.fail_after(GUESS_SECONDS if part is not parts[-1] else None):
                    result = await attempt(part, uri)
            except TimeoutError:
                failure = failure or part.late()
            except McpError as error:
                # A token that would do for one that is only guessed says nothing of whether it is there.
                if _is_missing(error) or isinstance(error, InsufficientScope):
                    missing.append(str(error) if _is_missing(error) else "resource not found")
                else:
                    failure = failure or error
            else:
                _remember(self._guessed, uri, part)
                return result
        self._guessed.pop(uri, None)
        raise failure or ResourceNotFound(uri, next(iter(missing), "resource not found") + absent(self._parts))

    async def _claiming(self, context: Context[Any], uri: str) -> list[Part]:
        """Those that may be taken for the owner, the likeliest first."""
        ranks = {part: rank for part in self._parts if (rank := self._rank(part, uri)) is not None}
        for part, told in await self._directory.entries(TEMPLATES, context):
            if any(fits(entry["uriTemplate"], uri) for entry in told.entries):
                ranks.setdefault(part, _TEMPLATE)
        page_owner = self._tools_of(context).page_owner(uri, context)
        if page_owner is not None:
            ranks[page_owner] = min(ranks.get(page_owner, _PAGE), _PAGE)
        return sorted(ranks, key=lambda part: ranks[part] + _FOREIGN * part.is_foreign)

    def _rank(self, part: Part, uri: str) -> int | None:
        if part.declares(uri):
            return _DECLARED
        return _LISTED if uri in self._listed[part] else None

    def _named(self, name: str) -> Part:
        if name not in self._names:
            raise InvalidParams("the server that has asked is not here any more")
        return self._names[name]


def _remember(known: OrderedDict[str, Value], uri: str, value: Value) -> None:
    if len(uri) <= LONGEST_KNOWN:
        known[uri] = value
        known.move_to_end(uri)
        if len(known) > MAX_KNOWN:
            known.popitem(last=False)


def _is_missing(error: McpError) -> bool:
    """Whether a server says that it has no such resource; those of others say so in the words of their version."""
    if isinstance(error, ResourceNotFound):
        return True
    if not isinstance(error, RpcError):
        return False
    # Up to 2025-11-25 the code says it, from 2026-07-28 on the data of a more general one.
    return error.code == _NOT_FOUND or (
        error.code == InvalidParams.code and isinstance(error.data, dict) and "uri" in error.data
    )
