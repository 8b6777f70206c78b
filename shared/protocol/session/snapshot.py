"""What lasts of a session, as values: any replica of a server makes the session of them, and tells the others.

Who the peer is and how far the handshake has come lasts; calls and questions do not, they stay where they landed.
"""

from ..identity import Peer, Principal
from ..records import record
from ..versions import Version
from ..wire.jsonrpc import Message
from .handshake import State

__all__ = ["NEW", "News", "SessionRecord", "Snapshot"]


@record
class Snapshot:
    """A session at one moment, made by `ServerSession.snapshot`."""

    state: State
    peer: Peer | None
    roots_changed: int = 0
    """How often the peer has said that its roots are others now."""

    @property
    def version(self) -> Version | None:
        """The version negotiated, once `initialize` is answered."""
        return None if self.peer is None else self.peer.version


NEW = Snapshot(State.NEW, None)
"""Before `initialize`."""


@record
class SessionRecord:
    """A session as its store has it."""

    id: str
    principal: Principal | None
    """Whose it is: to anybody else it is unknown."""
    client: str
    """A name for whoever has opened it, an address and a principal."""
    idle_seconds: float
    """How long it is kept where no replica has it."""
    snapshot: Snapshot


@record
class News:
    """What one replica tells another one about `session`: a message for what runs there, or how the session is now.
    Neither: it has ended."""

    session: str
    message: Message | None = None
    snapshot: Snapshot | None = None
