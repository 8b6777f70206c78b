"""What a gateway's client has in place of handlers: what its server says goes to those on whose behalf it asks."""

from dataclasses import dataclass
from typing import Any, Protocol

from ..protocol.session.client import ClientIdentity
from ..protocol.session.client_events import Asked, Notified
from ..protocol.wire.jsonrpc import Gap


class Relay(Protocol):
    """Takes what a server says besides its answers, as it came."""

    async def answer(self, asked: Asked) -> dict[str, Any]:
        """The result of a question of the server's. Raises RpcError for a refusal; the server may take the question
        back, which cancels this."""

    def heard(self, notice: Notified | Gap) -> None:
        """Takes a notification, or that some may have been lost. Never waits or raises."""


@dataclass(frozen=True, slots=True)
class Caller:
    """On whose behalf a request is made."""

    relay: Relay
    """Takes what belongs to that request, where the server or the transport tells that it does."""
    wants_progress: bool = False
    identity: ClientIdentity | None = None
    """Who that is: said with the request where there is no handshake; None says who we are."""
