"""The lifecycle of the stateless era, from 2026-07-28 on. Every request has an envelope in `params._meta`: the
protocol version, the client's capabilities and the log level. The server remembers none of this for the next request
(2026-07-28, Basic Protocol, Statelessness).
"""

from typing import Any

from ...errors import InvalidParams, RpcError
from ..identity import LOG_LEVELS, Identity, Peer, Principal
from ..types.base import CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROTOCOL_VERSION
from ..versions import VERSIONS, Version, find_version

_STATELESS = tuple(version for version in VERSIONS if version.stateless)


def claims_envelope(params: dict[str, Any]) -> bool:
    """Return True if a request belongs to the stateless era: its `_meta` has the key for the protocol version."""
    meta = params.get("_meta")
    # Only the key counts here; its value is checked later. `_meta` alone is no sign, since older peers send progress
    # tokens in it.
    return isinstance(meta, dict) and PROTOCOL_VERSION in meta


def admit(params: dict[str, Any], principal: Principal | None) -> Peer:
    """Return the sender of a request with these `params`.

    Raises InvalidParams for an incomplete envelope, and RpcError with code -32022 for an unsupported version.
    """
    meta = check_envelope(params)
    version = stateless_version(meta[PROTOCOL_VERSION])
    # The client should identify itself, but need not. Nothing depends on it.
    info, level = meta.get(CLIENT_INFO), meta.get(LOG_LEVEL)
    if level is not None and level not in LOG_LEVELS:
        raise InvalidParams(f"{LOG_LEVEL} must be one of {', '.join(LOG_LEVELS)}")
    return Peer(version, meta[CLIENT_CAPABILITIES], info if isinstance(info, dict) else None, level, principal)


def check_envelope(params: dict[str, Any]) -> dict[str, Any]:
    """Return the `_meta` of `params`. Raises InvalidParams if a required key is missing or has the wrong type."""
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        raise InvalidParams('"params._meta" is required')
    if not isinstance(meta.get(PROTOCOL_VERSION), str):
        raise InvalidParams(f'"{PROTOCOL_VERSION}" must be a string in "params._meta"')
    if not isinstance(meta.get(CLIENT_CAPABILITIES), dict):
        raise InvalidParams(f'"{CLIENT_CAPABILITIES}" must be an object in "params._meta"')
    return meta


def stateless_version(requested: str) -> Version:
    """Return the version with the date `requested`. Raises RpcError -32022 if it is not a stateless one."""
    version = find_version(requested)
    if version is None or not version.stateless:
        # The specification requires both keys. The client chooses one of these versions and sends the request again.
        data = {"supported": [version.date for version in _STATELESS], "requested": requested}
        raise RpcError("unsupported protocol version", code=-32022, data=data)
    return version


def discover(identity: Identity, peer: Peer) -> dict[str, Any]:
    """Return the result of `server/discover` for `peer`."""
    result: dict[str, Any] = {
        # Versions with a handshake are left out: a client that chose one would have to start over with `initialize`.
        "supportedVersions": [version.date for version in _STATELESS],
        "capabilities": identity.capabilities_for(peer.version, peer.principal),
        "cacheScope": "public",
    }
    if identity.instructions is not None:
        result["instructions"] = identity.instructions
    return result
