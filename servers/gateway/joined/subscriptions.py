"""Subscriptions to resources of the servers that are joined: one at the owner for all clients that share its key.

Each client's subscription is made by the owner, which so decides about each of them; that of the first is kept until
the last has gone. Where the owner closes, they stay, and are made again when it returns.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shared.errors import InputRequired, McpError
from shared.server.dispatch.context import Context
from shared.server.run import Run

from .owners import Owners
from .part import Part

log = logging.getLogger("shared.gateway")


@dataclass(slots=True, eq=False)
class _Held:
    """A subscription at its owner: the run of it that has it, under which key, and how it was made."""

    part: Part
    running: Run[Any]
    key: str
    uri: str
    context: Context[Any]
    coming: int = 0
    """How many clients are about to share it."""


class Subscriptions:
    """What is held at the owners, by keys of our own."""

    def __init__(self, owners: Owners, tell: Callable[[str, str | None], None]) -> None:
        """`tell` is called with a key, and a part's URI, of which a client is to hear that it has changed."""
        self._owners = owners
        self._tell = tell
        self._held: dict[str, _Held] = {}
        self._ours: dict[tuple[Part, str], set[str]] = {}
        """Our keys by those of the owner. One may have got the key that another had before its owner closed."""

    async def begin(self, context: Context[Any], uri: str) -> str:
        """Begins a subscription for the call of `context`; our key. Raises as `Owners.first` does."""

        async def hold(part: Part, own: str) -> tuple[Part, str, Run[Any], str]:
            return part, own, *await part.hold(context, own)

        part, own, running, key = await self._owners.first(context, uri, hold)
        ours = f"{part.name} {key}"
        held = self._held.get(ours)
        if held is None:
            self._enter(ours, _Held(part, running, key, own, context))
        elif held.running is not running:
            self._move(ours, held, running, key)
        else:
            held.coming += 1
            try:
                await running.changes.release([key])
            finally:
                held.coming -= 1
        return ours

    async def end(self, ours: str) -> None:
        """Nobody has a subscription of our key `ours` any more."""
        held = self._held.get(ours)
        if held is None or held.coming:
            return
        del self._held[ours]
        self._leave(ours, held)
        await _release(held.part, held.running, held.key)

    def changed(self, part: Part, key: str, of: str | None) -> None:
        """The resource that `part` knows under `key` has changed, or the part `of` it."""
        for ours in self._ours.get((part, key), ()):
            self._tell(ours, of)

    async def renew(self, part: Part) -> None:
        """Begins what was held at `part` anew, as it is open again, and tells all clients that it has changed: it may
        have done so meanwhile."""
        for ours, held in list(self._held.items()):
            if held.part is not part:
                continue
            try:
                running, key = await part.hold(held.context, held.uri)
            except (McpError, InputRequired) as error:
                log.info("%s: a subscription ended with the server: %s", part.name, error)
            else:
                # Meanwhile it may have ended, or a new client may have brought another.
                if self._held.get(ours) is held and held.running is not running:
                    self._move(ours, held, running, key)
                else:
                    await _release(held.part, running, key)
            self._tell(ours, None)

    def _move(self, ours: str, held: _Held, running: Run[Any], key: str) -> None:
        self._leave(ours, held)
        held.running, held.key = running, key
        self._enter(ours, held)

    def _enter(self, ours: str, held: _Held) -> None:
        self._held[ours] = held
        self._ours.setdefault((held.part, held.key), set()).add(ours)

    def _leave(self, ours: str, held: _Held) -> None:
        sharing = self._ours[held.part, held.key]
        sharing.discard(ours)
        if not sharing:
            del self._ours[held.part, held.key]


async def _release(part: Part, running: Run[Any], key: str) -> None:
    """Ends a subscription at its owner, unless that has closed since."""
    if part.running is running:
        await running.changes.release([key])
