"""What the replicas of a server know of a session in common, and what they tell each other of it."""

from ..identity import Principal
from ..records import record
from ..wire.jsonrpc import Message
from .handshake import Snapshot

__all__ = ["News", "SessionRecord"]


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
    """What one replica tells another one about `session`: a message for what runs there, how the session is now,
    or a resource that is no longer told of there. None of them: it has ended."""

    session: str
    message: Message | None = None
    snapshot: Snapshot | None = None
    uri: str | None = None
