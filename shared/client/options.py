"""What a client is given when it is made."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..protocol.session.client import ClientIdentity, first_version
from ..protocol.versions import Version, versions_between
from ..version import __version__

__all__ = ["ClientOptions", "Handler", "Notify", "Progress"]

Handler = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
"""Answers a question of the server's: params to result. An `RpcError` refuses it; any other exception ends
the client, as it is its user's."""
Notify = Callable[[str, dict[str, Any]], None]
"""Takes a notification: its method and params. It must not block, and an exception of it ends the client."""
Progress = Callable[[float, float | None, str | None], None]
"""Takes how far a call is: progress, total and message. As with `Notify`, it must neither block nor raise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """Everything has a default. What the client declares it can do follows from the handlers."""

    name: str = "mcp-server-bundle"
    version: str = __version__
    mode: str = "auto"
    """"auto" tries the stateless era first; "stateless", "handshake" or the date of a version insist."""
    min_version: str | None = None
    """The date of the oldest version that is spoken; None for the oldest there is."""
    max_version: str | None = None
    """The date of the newest version that is spoken; None for the newest there is."""
    elicit: Handler | None = None
    """Answers `elicitation/create`; forms only, unless `capabilities` say more."""
    sample: Handler | None = None
    """Answers `sampling/createMessage`."""
    roots: Handler | None = None
    """Answers `roots/list`."""
    on_notification: Notify | None = None
    """Takes every notification that belongs to no call and no subscription, log messages for one."""
    log_level: str | None = None
    """The mildest log message wanted; None leaves it to the server, which in the stateless era sends none."""
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    """Declared besides what follows from the handlers, or in place of it."""
    restart: bool = False
    """Whether a server that a command started, and that has ended, is started again by the next call, for a new
    session. The calls that it had raise ConnectionError, but for those that are safe to repeat. Where it goes on
    ending, the pauses grow to 30 seconds."""
    reconnect: bool = True
    """The same for a server at a URL whose connection was lost, or that has forgotten the session."""
    heartbeat_seconds: float | None = 30.0
    """How long a server may be silent while there are subscriptions and no calls, before it is pinged; one that does
    not answer in the same time counts as lost. None pings never."""
    probe_seconds: float = 5.0
    """How long "auto" waits for a stateless answer: old servers may never give one."""

    def handlers(self) -> dict[str, Handler]:
        """The handlers by the method they answer."""
        given = {"elicitation/create": self.elicit, "sampling/createMessage": self.sample, "roots/list": self.roots}
        return {method: handler for method, handler in given.items() if handler is not None}

    def accepted(self) -> tuple[Version, ...]:
        """The versions that are spoken, oldest first. Raises ValueError where there is none."""
        versions = versions_between(self.min_version, self.max_version)
        first = first_version(self.mode, versions)
        return tuple(one for one in versions if self.mode == "auto" or one.stateless is first.stateless)

    def identity(self) -> ClientIdentity:
        """What the client says of itself."""
        follows: dict[str, Any] = {}
        if self.elicit is not None:
            follows["elicitation"] = {"form": {}}
        if self.sample is not None:
            follows["sampling"] = {}
        if self.roots is not None:
            follows["roots"] = {}
        info = {"name": self.name, "version": self.version}
        return ClientIdentity(info, {**follows, **self.capabilities}, self.log_level)
