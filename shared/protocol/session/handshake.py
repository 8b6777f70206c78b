"""The lifecycle up to 2025-11-25: `initialize`, its answer, `notifications/initialized`.

    state      initialize    ping      any other request    notifications/initialized
    NEW        → OPENING     served    -32600               ignored
    OPENING    -32600        served    served               → OPEN
    OPEN       -32600        served    served               ignored

Requests are served from the answer to `initialize` on, since clients that pipeline don't wait for their own
`initialized` to arrive. Only unsolicited messages wait for OPEN (2025-11-25, Lifecycle, Initialization).
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
"""The sender before `initialize`, about which nothing is known."""

_SESSIONS = count()
_PEER_FIELDS = ("capabilities", "info", "log_level", "session")
"""The fields of a peer that are stored unchanged."""


class State(Enum):
    """The state of the handshake."""

    NEW = "new"
    OPENING = "opening"
    OPEN = "open"


@record
class Snapshot:
    """The persistent part of a session, from which any replica can continue. Calls and questions stay at the replica
    where they arrived."""

    state: State
    peer: Peer | None
    roots_changed: int = 0
    """The number of times that the peer has reported a change to its roots."""
    needed_scopes: frozenset[str] = frozenset()
    """The scopes that its calls have needed."""


NEW = Snapshot(State.NEW, None)
"""Before `initialize`."""


def merge(current: Snapshot, before: Snapshot, after: Snapshot) -> Snapshot:
    """Return `current` with the changes from `before` to `after` applied; `after` itself if `current` has no other
    changes."""
    peer, peer_before, peer_after = current.peer, before.peer, after.peer
    if peer is None or peer_after is None:
        peer = peer or peer_after
    # Nothing else of a peer changes after the handshake, so other replicas' changes are kept.
    elif peer_before is None or peer_before.log_level != peer_after.log_level:
        peer = replace(peer, log_level=peer_after.log_level)
    # A state only moves forward, so an older one that arrives late is ignored.
    state = max(current.state, after.state, key=list(State).index)
    roots_changed = current.roots_changed + after.roots_changed - before.roots_changed
    merged = Snapshot(state, peer, roots_changed, current.needed_scopes | after.needed_scopes)
    return after if merged == after else merged


def write_snapshot(snapshot: Snapshot) -> dict[str, Any]:
    """Return `snapshot` as JSON, without the principal."""
    peer = snapshot.peer
    fields: dict[str, Any] = {"state": snapshot.state.value, "rootsChanged": snapshot.roots_changed}
    fields["neededScopes"] = sorted(snapshot.needed_scopes)
    if peer is None:
        return fields
    own = {name: getattr(peer, name) for name in _PEER_FIELDS}
    return {**fields, "peer": {**own, "version": peer.version.date}}


def read_snapshot(fields: dict[str, Any], principal: Principal | None) -> Snapshot:
    """Return the snapshot from the result of `write_snapshot`, for a peer with that `principal`. Raises ValueError or
    KeyError for anything else."""
    peer = None
    if "peer" in fields:
        version = find_version(fields["peer"]["version"])
        if version is None:
            raise ValueError(
                f"the session uses protocol version {fields['peer']['version']!r}, which this server does not support"
            )
        own = {name: fields["peer"][name] for name in _PEER_FIELDS}
        peer = Peer(version, principal=principal, **own)
    return Snapshot(State(fields["state"]), peer, fields["rootsChanged"], frozenset(fields["neededScopes"]))


class Handshake:
    """One peer's handshake. `peer` is set by `initialize`."""

    __slots__ = ("_principal", "_replica", "peer", "state")

    def __init__(self, principal: Principal | None, replica: int = 0) -> None:
        self.state = State.NEW
        self.peer: Peer | None = None
        self._principal = principal
        self._replica = replica

    def initialize(self, params: InitializeParams, identity: Identity) -> dict[str, Any]:
        """Return the result of `initialize`, with the requested version, or the newest version if the requested one
        is not supported. Raises InvalidRequest if the session is already initialized.
        """
        if self.state is not State.NEW:
            raise InvalidRequest("this session is already initialized")
        requested = find_version(params.protocol_version)
        # An unsupported version is answered with a supported one, and the client disconnects if it can't use that
        # (2025-11-25, Lifecycle, Version Negotiation). A version without a handshake can't be negotiated in a
        # handshake.
        version = requested if requested is not None and not requested.stateless else NEWEST_HANDSHAKE
        info = params.client_info.to_wire()
        # The number is unique among all replicas, which continue each other's sessions.
        number = self._replica << 32 | next(_SESSIONS)
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
        """Return the result of a `call` that concerns the protocol rather than a feature of the server.

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
            # The peer is copied, so that calls in progress keep theirs unchanged.
            self.peer = replace(self.peer, log_level=level)

    def complete(self) -> bool:
        """Handle `notifications/initialized`; return True if it completes the handshake."""
        if self.state is not State.OPENING:
            return False
        self.state = State.OPEN
        return True
