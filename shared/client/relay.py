"""The replacement for handlers in a gateway's client: messages from the server are passed on to the callers, on whose
behalf the client makes requests."""

from dataclasses import dataclass
from typing import Any, Protocol

from ..protocol.session.client_events import Notified, ServerRequest
from ..protocol.session.descriptions import ClientIdentity
from ..protocol.wire.jsonrpc import Gap


class Relay(Protocol):
    """Receives the requests and notifications from a server, unchanged."""

    async def answer(self, request: ServerRequest) -> dict[str, Any]:
        """Return the answer to a request from the server. Raises RpcError to refuse the request; cancelled if the
        server withdraws it."""

    def on_server_message(self, message: Notified | Gap) -> None:
        """Handle a notification, or a gap in which some may have been lost. Must neither wait nor raise."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The origin of a request that is made on behalf of someone else."""

    relay: Relay
    """Receives the messages that belong to the request, if the server or the transport identifies them."""
    wants_progress: bool = False
    identity: ClientIdentity | None = None
    """The caller's identity, which is sent with a request in the stateless era; None to send the client's own."""
