"""`Replication`: what one run of a server shares with its replicas, other runs of that server in other processes.

A run that serves some principals only, by settings of their own, is a part of the run that was opened with the
stores: to the other replicas all parts are one, and each change says by a name which part it is of.
"""

import secrets
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from ..contracts import Blobs
from ..protocol.session.events import Change
from .dispatch.changes import Changes

if TYPE_CHECKING:
    from ..contracts import Replica


class Replication:
    """The replica that one run is, if it is one, and the name of the part that it is."""

    def __init__(self, changes: Changes) -> None:
        self.replica: Replica | None = None
        """What the run shares with others; None where it is alone."""
        self.name = ""
        """The principal that the run serves alone, by the name under which it was narrowed; "" is all."""
        self.questions = count(1)
        """The ids of what peers are asked, where replicas share them."""
        self.changes = changes
        self._parts: dict[str, Changes] = {}

    def join(self, replica: "Replica") -> None:
        """Shares what changes with the other replicas, as one of which the run was opened."""
        self.replica = replica
        self.changes.share = partial(replica.bus.publish, "")
        replica.bus.hear(self._heard)
        replica.watch(self)

    def narrow(self, name: str, part: "Replication") -> None:
        """Has `part`, or this itself, be what serves principals of that name."""
        self._parts[name] = part.changes
        if part is not self:
            part.name, part.questions = name, self.questions
            if self.replica is not None:
                part.changes.share = partial(self.replica.bus.publish, name)
                self.replica.bus.hear(self._heard)  # the part has joined in its turn: this one hears for all

    def blobs(self) -> Blobs | None:
        """What the replicas keep for each other; None where the run is alone."""
        return None if self.replica is None else _PartBlobs(self, self.replica.blobs)

    def _heard(self, name: str, change: Change) -> None:
        for changes in [self._parts.get(name, self.changes)] if name else self._all():
            changes.heard(change)

    def _all(self) -> list[Changes]:
        return [self.changes, *(changes for changes in self._parts.values() if changes is not self.changes)]

    def lost(self) -> None:
        """Whatever the others tell of, this one does not hear."""

    def returned(self) -> None:
        """This one hears again what the others tell of, and has missed something."""
        for changes in self._all():
            changes.look_again()

    def left(self) -> None:
        """Another replica is gone."""


class _PartBlobs:
    """`Blobs` of one run. Runs that are narrowed to different principals do not see each other's: they may have been
    given other settings, as credentials."""

    def __init__(self, part: Replication, blobs: Blobs) -> None:
        self._part = part
        self._blobs = blobs

    async def put(self, data: bytes, seconds: float, name: str | None = None) -> str:
        """Keeps `data` for so long, under a `name` or one that can't be guessed, which this gives."""
        name = name or secrets.token_urlsafe(16)
        await self._blobs.put(data, seconds, self._whole(name))
        return name

    async def get(self, name: str) -> bytes | None:
        """What is kept under that name; None where nothing is."""
        return await self._blobs.get(self._whole(name))

    async def claim(self, name: str, seconds: float) -> bool:
        """Whether nobody has claimed that name before, which is claimed for so long from now on."""
        return await self._blobs.claim(self._whole(name), seconds)

    def _whole(self, name: str) -> str:
        # Not before it is needed: whom a run serves is said when it is open. A name has no NUL.
        return f"run:{self._part.name}\0{name}"
