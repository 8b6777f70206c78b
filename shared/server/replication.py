"""`Replication`: what a run of a server shares with its replicas, runs of the same server in other processes.

The operator may give principals their own settings. Such principals are served by separate runs, called parts. The
main run is the one that was opened with the stores. To the other replicas, it and its parts are one replica; a change
contains the name of its part.
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
    """The connection of one run to the other replicas, if there are any."""

    def __init__(self, changes: Changes) -> None:
        self.replica: Replica | None = None
        """The stores that the replicas share; None if this is the only process."""
        self.name = ""
        """The name of the group of principals that this part serves; "" for the main run."""
        self.question_ids = count(1)
        """The numbers in the ids of questions to peers, which all sessions of this replica share."""
        self.changes = changes
        self._parts: dict[str, Changes] = {}

    def join(self, replica: "Replica") -> None:
        """Connect this run to the other replicas: it publishes its changes through `replica`, and receives theirs."""
        self.replica = replica
        self.changes.share = partial(replica.bus.publish, "")
        replica.bus.listen(self._on_change)
        replica.watch(self)

    def add_part(self, name: str, part: "Replication") -> None:
        """Make `part`, which may be this run itself, the run for principals with that name."""
        self._parts[name] = part.changes
        if part is not self:
            part.name, part.question_ids = name, self.question_ids
            if self.replica is not None:
                part.changes.share = partial(self.replica.bus.publish, name)
                # `part.join` has set the part's own handler on the bus, which has only one; it is replaced here.
                self.replica.bus.listen(self._on_change)

    def blobs(self) -> Blobs | None:
        """Return the store for data that the replicas share; None if this is the only process."""
        return None if self.replica is None else _PartBlobs(self, self.replica.blobs)

    def _on_change(self, name: str, change: Change) -> None:
        for changes in [self._parts.get(name, self.changes)] if name else self._all_changes():
            changes.receive(change)

    def _all_changes(self) -> list[Changes]:
        return [self.changes, *(changes for changes in self._parts.values() if changes is not self.changes)]

    def on_lost(self) -> None:
        """Do nothing: changes of other replicas no longer arrive, and `on_return` makes up for them."""

    def on_return(self) -> None:
        """Report everything as changed: changes of other replicas arrive again, but some were missed."""
        for changes in self._all_changes():
            changes.notify_all()

    def on_departure(self) -> None:
        """Do nothing."""


class _PartBlobs:
    """The `Blobs` of one part, which no other part sees: they may have different settings, such as credentials."""

    def __init__(self, part: Replication, blobs: Blobs) -> None:
        self._part = part
        self._blobs = blobs

    async def put(self, data: bytes, seconds: float, name: str | None = None) -> str:
        """Store `data` for `seconds`, and return its name: `name`, or a new one that can't be guessed."""
        name = name or secrets.token_urlsafe(16)
        await self._blobs.put(data, seconds, self._qualified_name(name))
        return name

    async def get(self, name: str) -> bytes | None:
        """Return the data stored under that name; None if there is none."""
        return await self._blobs.get(self._qualified_name(name))

    async def claim(self, name: str, seconds: float) -> bool:
        """Claim that name for `seconds`. Return False if it was claimed before."""
        return await self._blobs.claim(self._qualified_name(name), seconds)

    def _qualified_name(self, name: str) -> str:
        # Computed each time, since a run receives its name only after it has opened. No name contains a NUL.
        return f"run:{self._part.name}\0{name}"
