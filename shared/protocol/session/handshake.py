"""The lifecycle of the handshake era, up to 2025-11-25: `initialize`, its answer, and `notifications/initialized`.

    state      initialize    ping      any other request    notifications/initialized
    NEW        → OPENING     served    -32600               ignored
    OPENING    -32600        served    served               → OPEN
    OPEN       -32600        served    served               ignored

Requests are served as soon as `initialize` is answered, even before `initialized`, since some clients send requests
without waiting. Only messages that the server sends on its own initiative wait for OPEN (2025-11-25, Lifecycle,
Initialization).
"""

from dataclasses import replace
from enum import Enum
from itertools import count
from typing import Any

from ...errors import InvalidRequest
from ..identity import Identity, Peer, Principal
from ..records import record
from ..types.client import InitializeParams
from ..versions import NEWEST_HANDSHAKE, find_version
from .envelope import discover
from .events import Call

FIRST_PEER = Peer(NEWEST_HANDSHAKE)
"""The peer before `initialize`, about which nothing is known."""

_session_numbers = count()
_PEER_FIELDS = ("capabilities", "info", "log_level", "session")
"""The fields of a peer that a snapshot stores unchanged."""


class State(Enum):
    """The state of the handshake."""

    NEW = "new"
    OPENING = "opening"
    OPEN = "open"


@record
class Snapshot:
    """The part of a session that all replicas share, so that any of them can continue it. Requests in progress, of
    both sides, stay on the replica where they began."""

    state: State
    peer: Peer | None
    roots_changed: int = 0
    """The number of times that the peer has reported a change to its roots."""
    needed_scopes: frozenset[str] = frozenset()
    """All OAuth scopes that calls of the session have needed so far."""


NEW = Snapshot(State.NEW, None)
"""The snapshot of a session before `initialize`."""


def merge(current: Snapshot, before: Snapshot, after: Snapshot) -> Snapshot:
    """Return `current` with the changes from `before` to `after`. If `current` has no other changes, `after` itself
    is returned."""
    peer, peer_before, peer_after = current.peer, before.peer, after.peer
    if peer is None or peer_after is None:
        peer = peer or peer_after
    # After the handshake only the log level of a peer can change. If it did not change here, `current` keeps the one
    # that another replica may have set.
    elif peer_before is None or peer_before.log_level != peer_after.log_level:
        peer = replace(peer, log_level=peer_after.log_level)
    # A state only moves forward, so an earlier state that arrives late is ignored.
    state = max(current.state, after.state, key=list(State).index)
    roots_changed = current.roots_changed + after.roots_changed - before.roots_changed
    merged = Snapshot(state, peer, roots_changed, current.needed_scopes | after.needed_scopes)
    return after if merged == after else merged


def write_snapshot(snapshot: Snapshot) -> dict[str, Any]:
    """Return `snapshot` as JSON-serializable values, without the principal."""
    peer = snapshot.peer
    fields: dict[str, Any] = {"state": snapshot.state.value, "rootsChanged": snapshot.roots_changed}
    fields["neededScopes"] = sorted(snapshot.needed_scopes)
    if peer is None:
        return fields
    peer_fields = {name: getattr(peer, name) for name in _PEER_FIELDS}
    return {**fields, "peer": {**peer_fields, "version": peer.version.date}}


def read_snapshot(fields: dict[str, Any], principal: Principal | None) -> Snapshot:
    """Return the snapshot in a result of `write_snapshot`, for a peer with that `principal`. Raises ValueError or
    KeyError for other values."""
    peer = None
    if "peer" in fields:
        version = find_version(fields["peer"]["version"])
        if version is None:
            raise ValueError(
                f"the session uses protocol version {fields['peer']['version']!r}, which this server does not support"
            )
        peer_fields = {name: fields["peer"][name] for name in _PEER_FIELDS}
        peer = Peer(version, principal=principal, **peer_fields)
    return Snapshot(State(fields["state"]), peer, fields["rootsChanged"], frozenset(fields["neededScopes"]))


class Handshake:
    """The handshake of one session. `peer` is None before `initialize`."""

    __slots__ = ("_principal", "_replica", "peer", "state")

    def __init__(self, principal: Principal | None, replica: int = 0) -> None:
        self.state = State.NEW
        self.peer: Peer | None = None
        self._principal = principal
        self._replica = replica

    def initialize(self, params: InitializeParams, identity: Identity) -> dict[str, Any]:
        """Return the result of `initialize`, with the requested version, or the newest version with a handshake if
        the requested one is not supported. Raises InvalidRequest if the session is already initialized.
        """
        if self.state is not State.NEW:
            raise InvalidRequest("this session is already initialized")
        requested = find_version(params.protocol_version)
        # The client disconnects if it does not support the version in the answer (2025-11-25, Lifecycle, Version
        # Negotiation). A stateless version has no handshake, so it can't be negotiated here.
        version = requested if requested is not None and not requested.stateless else NEWEST_HANDSHAKE
        info = params.client_info.to_wire()
        # The number must be unique among all replicas, because they continue each other's sessions.
        number = self._replica << 32 | next(_session_numbers)
        self.peer = Peer(version, params.capabilities, info, identity.log_level, self._principal, number)
        self.state = State.OPENING
        result: dict[str, Any] = {
            "protocolVersion": version.date,
            "capabilities": identity.capabilities_for(version, self._principal),
            "serverInfo": identity.server_info,
        }
        if identity.instructions is not None:
            result["instructions"] = identity.instructions
        return result

    def answer(self, call: Call, identity: Identity) -> dict[str, Any]:
        """Return the result of a `call` of a built-in method, which concerns the protocol, not a feature.

        Raises InvalidRequest for a second `initialize`.
        """
        match call.method.name:
            case "initialize":
                return self.initialize(call.params, identity)
            case "server/discover":
                return discover(identity, call.peer)
            case "logging/setLevel":
                self.set_log_level(call.params.level)
        return {}

    def set_log_level(self, level: str) -> None:
        """Set the lowest level of log messages for this peer, as `logging/setLevel` requests."""
        if self.peer is not None:
            # The peer is copied, since calls in progress refer to the old one.
            self.peer = replace(self.peer, log_level=level)

    def complete(self) -> bool:
        """Handle `notifications/initialized`; return True if it completes the handshake."""
        if self.state is not State.OPENING:
            return False
        self.state = State.OPEN
        return True
