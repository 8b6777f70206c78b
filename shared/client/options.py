"""What a client is given when it is made."""

from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..protocol.session.client import ClientIdentity, first_version
from ..protocol.types.client import CreateMessageResult, ElicitResult, Root
from ..protocol.types.elicitation import ElicitForm, ElicitUrl
from ..protocol.types.resources import CONDITIONAL_READS
from ..protocol.types.sampling import CreateMessageParams
from ..protocol.types.tasks import TASKS
from ..protocol.versions import Version, versions_between
from ..protocol.wire.dialects import CLIENT_DIALECTS
from ..version import __version__
from .approval import Permit
from .cache import CACHE_BYTES, ResponseCache
from .relay import Relay

Handler = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
"""Answers a question of the server's: params to result. An `RpcError` refuses it; any other exception ends
the client, as it is its user's. This holds for the handlers that follow, too."""
Elicit = Callable[[ElicitForm], Awaitable[ElicitResult]]
"""Has the user fill in a form. What it leaves out gets its default; what it gives is checked before it is sent."""
ElicitAtUrl = Callable[[ElicitUrl], Awaitable[ElicitResult]]
"""Shows the user the whole URL and asks whether to open it. "accept" says that it was opened, not what came of it."""
Sample = Callable[[CreateMessageParams], Awaitable[CreateMessageResult]]
"""Has the client's model go on with a conversation; a person should have seen both before anything is sent."""
Roots = Sequence[Root] | Callable[[], Awaitable[Sequence[Root]]]
"""The directories the user works in, or what gives them whenever they are asked for."""
Log = Callable[[str, str | None, Any], None]
"""Takes a log message of the server's: level, name of the logger, data. As `Notify`."""
Notify = Callable[[str, dict[str, Any]], None]
"""Takes a notification: its method and params. It must not block, and an exception of it ends the client."""
Progress = Callable[[float, float | None, str | None], None]
"""Takes how far a call is: progress, total and message. As with `Notify`, it must neither block nor raise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """Everything has a default. What the client declares it can do follows from the handlers."""

    name: str = "mcp-server-bundle"
    version: str = __version__
    info: Mapping[str, Any] | None = None
    """What is said of the client in place of name and version, as on the wire."""
    mode: str = "auto"
    """"auto" tries the stateless era first; "stateless", "handshake" or the date of a version insist."""
    dialect: str | None = None
    """The document whose dialect is spoken, "000" or "002", in place of a version of the specification."""
    min_version: str | None = None
    """The date of the oldest version that is spoken; None for the oldest there is."""
    max_version: str | None = None
    """The date of the newest version that is spoken; None for the newest there is."""
    elicit: Elicit | None = None
    """Answers forms; without it they are not declared."""
    elicit_url: ElicitAtUrl | None = None
    """Answers requests to visit a page; without it they are not declared. A request that the server refuses before a
    page has been visited is made again once: when it says that the visit is over, or the request's time is up."""
    on_visited: Callable[[str], None] | None = None
    """Takes the id of a visit when the server says that it is over. As `Notify`."""
    sample: Sample | None = None
    """Answers what a server asks the client's model."""
    sample_tools: bool = False
    """Whether `sample` knows tools: servers may then give some with a conversation."""
    roots: Roots | None = None
    """What servers are told that ask for roots; see `Client.roots_changed`."""
    on_log: Log | None = None
    """Takes log messages; without it `on_notification` does."""
    on_notification: Notify | None = None
    """Takes every notification that belongs to no call and no subscription."""
    log_level: str | None = None
    """The mildest log message wanted; None leaves it to the server, which in the stateless era sends none."""
    check_arguments: bool = False
    """Whether arguments are checked against the schema of their tool before they are sent: a model's mistake is then
    told without a way to the server. It takes the extra `client`."""
    tasks: bool = True
    """Whether servers may make tasks of calls that last (SEP-2663, and tasks of 2025-11-25). They are followed to
    their ends: callers get the result as ever, however long it takes and on whatever connection it comes."""
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    """Declared besides what follows from the handlers, or in place of it."""
    relay: Relay | None = None
    """Takes whatever the server asks and tells that belongs to no request of a `Caller`, in place of all handlers:
    what is declared then is `capabilities` alone, and nothing is kept of lists and reads."""
    permit: Permit | None = None
    """Asked before every tool call, read and prompt, and before every question of the server's reaches its handler;
    what it raises keeps it from happening: `Denied`. It is not asked again for what is repeated."""
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
    opening_seconds: float | None = None
    """How long a server may take to start and answer, where nothing else can be tried; None for a minute."""
    cache_bytes: int = CACHE_BYTES
    """What may be kept of lists and reads, for as long as the server says, to be used again by the typed calls. With
    0 nothing is kept, and callers do not wait for each other's requests either."""
    cache: ResponseCache | None = None
    """One that clients share, in place of their own: what a server calls public is found by all that ask it."""
    cache_key: Hashable = field(default=None, repr=False)
    """What tells the server from others in a shared cache; `connect` takes the URL or the command."""

    def accepted(self) -> tuple[Version, ...]:
        """The versions that are spoken, oldest first. Raises ValueError where there is none."""
        versions = versions_between(self.min_version, self.max_version)
        if self.dialect is not None:
            return self._accepted_in_dialect(versions)
        first = first_version(self.mode, versions)
        return tuple(one for one in versions if self.mode == "auto" or one.stateless is first.stateless)

    def _accepted_in_dialect(self, versions: Sequence[Version]) -> tuple[Version, ...]:
        """Requests are made as in the stateless era before a dialect has them."""
        if self.dialect not in CLIENT_DIALECTS:
            raise ValueError(f"the dialect is {' or '.join(CLIENT_DIALECTS)}, not {self.dialect!r}")
        if self.mode not in ("auto", "stateless"):
            raise ValueError(f"a dialect has no versions of the specification: leave the mode {self.mode!r} out")
        return (first_version("stateless", versions),)

    def identity(self) -> ClientIdentity:
        """What the client says of itself."""
        follows: dict[str, Any] = {}
        modes = {"form": self.elicit, "url": self.elicit_url}
        if any(modes.values()):
            follows["elicitation"] = {mode: {} for mode, handler in modes.items() if handler is not None}
        if self.sample is not None:
            follows["sampling"] = {"tools": {}} if self.sample_tools else {}
        if self.roots is not None:
            follows["roots"] = {"listChanged": True}
        capabilities = {**follows, **self.capabilities}
        if self.relay is None and (self.cache_bytes if self.cache is None else self.cache.max_bytes):
            capabilities["extensions"] = {CONDITIONAL_READS: {}, **capabilities.get("extensions", {})}
        info = {"name": self.name, "version": self.version} if self.info is None else self.info
        # Who relays says of each caller whether it has tasks.
        has_tasks = self.tasks and self.relay is None
        extensions: dict[str, Any] = {TASKS: {}} if has_tasks else {}
        verbs = {"elicitation": "create", "sampling": "createMessage"}
        requests: dict[str, Any] = {kind: {verb: {}} for kind, verb in verbs.items() if kind in follows}
        tasks: dict[str, Any] = {"cancel": {}, "requests": requests} if requests and has_tasks else {}
        return ClientIdentity(dict(info), capabilities, self.log_level, extensions, tasks)
