"""Whose a resource is. URIs stay what they are, so their owner is looked for:

1. where it is declared or listed as it is, or was found the last time
2. where a template fits it
3. at all others that have resources, in their order

Of the first two kinds the first that knows it answers, whatever that is; of the last the first that has an answer
which is no error.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import anyio

from shared.errors import DeclarationError, InvalidParams, McpError, ResourceNotFound, RpcError
from shared.protocol.uri_template import UriTemplate
from shared.server.dispatch.context import Context

from .directory import Directory
from .list_cache import TEMPLATES
from .part import Part, absent, asked_by

Result = TypeVar("Result")

MAX_KNOWN = 10_000
LONGEST_KNOWN = 8_192
"""Characters of a URI that is remembered."""
GUESS_SECONDS = 5.0
"""How long a server that may know nothing of a resource makes those behind it wait."""
_NOT_FOUND = -32002


def _has_resources(part: Part) -> bool:
    return part.has("resources")


class Owners:
    """The owners of resources, as far as they are known."""

    def __init__(self, parts: Sequence[Part], directory: Directory) -> None:
        self._parts = parts
        self._directory = directory
        self._known: OrderedDict[str, Part] = OrderedDict()

    def forget(self) -> None:
        """Resources have come or gone."""
        self._known.clear()

    def learn(self, part: Part, entries: Iterable[Any]) -> None:
        """`part` lists these resources. What is another one's already stays that."""
        for entry in entries:
            uri = entry.get("uri") if isinstance(entry, dict) else None
            if isinstance(uri, str) and uri not in self._known:
                self._remember(uri, part)

    async def first(
        self,
        context: Context[Any],
        uri: str,
        attempt: Callable[[Part], Awaitable[Result]],
        *,
        serving: Callable[[Part], bool] = _has_resources,
    ) -> Result:
        """What `attempt` gives for the owner of `uri`, which is one of those that are `serving`.

        Raises ResourceNotFound where nobody has it, what the owner raises, and where nobody is known to be that what
        the first raises that knows more than that it has none.
        """
        asked = asked_by(context.call.round)
        if asked is not None:
            return await attempt(self._named(asked))
        certain = [part for part in await self._certain(context, uri) if serving(part)]
        others = [part for part in self._parts if serving(part) and part not in certain]
        missing: list[str] = []
        failure: McpError | None = None
        for part in certain:
            try:
                return self._found(uri, part, await attempt(part))
            except McpError as error:
                if not _is_missing(error):
                    raise
                missing.append(str(error))
        for part in others:
            try:
                # Nobody waits behind the last one.
                with anyio.fail_after(GUESS_SECONDS if part is not others[-1] else None):
                    return self._found(uri, part, await attempt(part))
            except TimeoutError:
                failure = failure or part.late()
            except McpError as error:
                if _is_missing(error):
                    missing.append(str(error))
                else:
                    failure = failure or error
        self._known.pop(uri, None)
        raise failure or ResourceNotFound(uri, next(iter(missing), "resource not found") + absent(self._parts))

    async def of_template(self, context: Context[Any], uri: str) -> Part | None:
        """Who has the template that is written so, or a resource at `uri`; None where nobody is known to."""
        for part, told in await self._directory.entries(TEMPLATES, context):
            if part.running is not None and any(entry["uriTemplate"] == uri for entry in told.entries):
                return part
        return next(iter(await self._certain(context, uri)), None)

    async def _certain(self, context: Context[Any], uri: str) -> list[Part]:
        """Those that may be taken for the owner, the likeliest first."""
        found = dict.fromkeys(part for part in self._parts if _declares(part, uri))
        if (known := self._known.get(uri)) is not None:
            found[known] = None
        for part, told in await self._directory.entries(TEMPLATES, context):
            if any(_fits(entry["uriTemplate"], uri) for entry in told.entries):
                found[part] = None
        return [part for part in found if _has_resources(part)]

    def _named(self, name: str) -> Part:
        for part in self._parts:
            if part.name == name:
                return part
        raise InvalidParams("the server that has asked is not here any more")

    def _found(self, uri: str, part: Part, result: Result) -> Result:
        self._remember(uri, part)
        return result

    def _remember(self, uri: str, part: Part) -> None:
        if len(uri) <= LONGEST_KNOWN:
            self._known[uri] = part
            self._known.move_to_end(uri)
            if len(self._known) > MAX_KNOWN:
                self._known.popitem(last=False)


def _declares(part: Part, uri: str) -> bool:
    running = part.running
    if running is None:
        return False
    return running.features.resources.knows(uri) or any(uri in one.open_resources for one in running.extensions)


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


def _fits(template: str, uri: str) -> bool:
    compiled = _compiled(template)
    return compiled is not None and compiled.match(uri) is not None


@lru_cache(1_000)
def _compiled(template: str) -> UriTemplate | None:
    try:
        return UriTemplate(template)
    except DeclarationError:
        return None
