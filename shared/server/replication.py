"""`Replication`: the state that one run of a server shares with its replicas, other runs in other processes.

A run that serves only some principals, with their own settings, is part of the run that was opened with the stores:
the other replicas see all parts as one, and each change carries the name of its part.
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
    """The replica of one run, if it has one, and the name of the part that this run represents."""

    def __init__(self, changes: Changes) -> None:
        self.replica: Replica | None = None
        """The connection to the other replicas; None if there are none."""
        self.name = ""
        """The name of the principals that the run was narrowed to; "" for all."""
        self.questions = count(1)
        """The ids of requests to peers, which replicas share."""
        self.changes = changes
        self._parts: dict[str, Changes] = {}

    def join(self, replica: "Replica") -> None:
        """Publish changes to the other replicas as `replica`, which belongs to this run."""
        self.replica = replica
        self.changes.share = partial(replica.bus.publish, "")
        replica.bus.listen(self._on_change)
        replica.watch(self)

    def narrow(self, name: str, part: "Replication") -> None:
        """Serve principals with that name through `part`, which may be this run itself."""
        self._parts[name] = part.changes
        if part is not self:
            part.name, part.questions = name, self.questions
            if self.replica is not None:
                part.changes.share = partial(self.replica.bus.publish, name)
                self.replica.bus.listen(self._on_change)  # replaces the handler of the part, which has joined too

    def blobs(self) -> Blobs | None:
        """Return the data that the replicas store for each other; None if there are no replicas."""
        return None if self.replica is None else _PartBlobs(self, self.replica.blobs)

    def _on_change(self, name: str, change: Change) -> None:
        for changes in [self._parts.get(name, self.changes)] if name else self._all_changes():
            changes.receive(change)

    def _all_changes(self) -> list[Changes]:
        return [self.changes, *(changes for changes in self._parts.values() if changes is not self.changes)]

    def on_lost(self) -> None:
        """Ignore the loss: changes from other replicas merely stop arriving."""

    def on_return(self) -> None:
        """Report everything as changed: changes from other replicas arrive again, but some were missed."""
        for changes in self._all_changes():
            changes.notify_all()

    def on_departure(self) -> None:
        """Ignore the loss of another replica."""


class _PartBlobs:
    """`Blobs` of one run. Runs for different principals do not see each other's data: they may have different
    settings, such as credentials."""

    def __init__(self, part: Replication, blobs: Blobs) -> None:
        self._part = part
        self._blobs = blobs

    async def put(self, data: bytes, seconds: float, name: str | None = None) -> str:
        """Store `data` for `seconds`. Return its name: `name`, or a new one that can't be guessed."""
        name = name or secrets.token_urlsafe(16)
        await self._blobs.put(data, seconds, self._full_name(name))
        return name

    async def get(self, name: str) -> bytes | None:
        """Return the data stored under that name; None if there is none."""
        return await self._blobs.get(self._full_name(name))

    async def claim(self, name: str, seconds: float) -> bool:
        """Claim that name for `seconds`. Return False if it was claimed before."""
        return await self._blobs.claim(self._full_name(name), seconds)

    def _full_name(self, name: str) -> str:
        # The principals of a run are set after it has opened, so this is computed each time. A name has no NUL.
        return f"run:{self._part.name}\0{name}"
