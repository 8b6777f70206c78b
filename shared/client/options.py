"""The options of a client."""

from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..protocol.session.client import first_version
from ..protocol.session.descriptions import ClientIdentity
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
"""Answers an input request of the server: accepts its params and returns the result. An `RpcError` refuses the
request; any other exception ends the client, since it is an error in the program that uses the client. The same
applies to the handlers below."""
Elicit = Callable[[ElicitForm], Awaitable[ElicitResult]]
"""Asks the user to fill in a form. Fields that are missing in the answer get their defaults, and the answer is
checked before it is sent."""
ElicitAtUrl = Callable[[ElicitUrl], Awaitable[ElicitResult]]
"""Shows the user the whole URL and asks whether to open it. "accept" means that it was opened, not that the visit
succeeded."""
Sample = Callable[[CreateMessageParams], Awaitable[CreateMessageResult]]
"""Continues a conversation with the client's model. A person should see the conversation and the answer before either
is sent."""
Roots = Sequence[Root] | Callable[[], Awaitable[Sequence[Root]]]
"""The user's working directories, or a function that is called whenever the server requests them."""
Log = Callable[[str, str | None, Any], None]
"""Receives a log message from the server: level, name of the logger, data. The rules of `Notify` apply."""
Notify = Callable[[str, dict[str, Any]], None]
"""Receives a notification: its method and params. It must not block, and an exception ends the client."""
Progress = Callable[[float, float | None, str | None], None]
"""Receives the progress of a call: progress, total and message. As with `Notify`, it must neither block nor raise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """The options of a client, all with defaults. The client declares the capabilities for which it has handlers."""

    name: str = "mcp-server-bundle"
    version: str = __version__
    info: Mapping[str, Any] | None = None
    """The description of the client, as on the wire, in place of `name` and `version`."""
    mode: str = "auto"
    """"auto" tries the stateless era first; "stateless", "handshake" or the date of a version requires that era or
    version."""
    dialect: str | None = None
    """The name of a dialect to speak, "000" or "002", instead of a version of the specification."""
    min_version: str | None = None
    """The date of the oldest accepted version; None for the oldest known version."""
    max_version: str | None = None
    """The date of the newest accepted version; None for the newest known version."""
    elicit: Elicit | None = None
    """Answers forms; without it, the client does not declare support for forms."""
    elicit_url: ElicitAtUrl | None = None
    """Answers requests to visit a page; without it, the client does not declare support for such requests. If the
    server refuses a request until a page has been visited, the request is repeated once: when the server reports that
    the visit is complete, or when the request's time is up."""
    on_visited: Callable[[str], None] | None = None
    """Receives the id of a visit when the server reports that it is complete. The rules of `Notify` apply."""
    sample: Sample | None = None
    """Answers requests to sample from the client's model."""
    sample_tools: bool = False
    """True if `sample` supports tools: servers may then send tools with a conversation."""
    roots: Roots | None = None
    """The roots for servers that request them; see `Client.roots_changed`."""
    on_log: Log | None = None
    """Receives log messages; without it, `on_notification` receives them."""
    on_notification: Notify | None = None
    """Receives every notification that belongs to no call and no subscription."""
    log_level: str | None = None
    """The lowest level of log messages to request; None leaves the choice to the server. In the stateless era,
    servers send only requested messages: None then requests "info" if there is an `on_log`, and otherwise nothing."""
    check_arguments: bool = False
    """True if arguments are checked against the schema of their tool before they are sent: a model's mistake is then
    reported without a round trip. Requires the extra `client`."""
    tasks: bool = True
    """True if servers may turn long calls into tasks (SEP-2663, and tasks of 2025-11-25). The client follows each
    task to its end: callers get the result as usual, however long it takes, and even if the client reconnects."""
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    """Capabilities to declare in addition to those of the handlers. A capability of the same name replaces that of a
    handler."""
    relay: Relay | None = None
    """Receives, in place of the handlers, all input requests and notifications from the server that belong to no
    request of a `Caller`. Only `capabilities` are declared then, and lists and reads are not cached."""
    permit: Permit | None = None
    """Called before every tool call, read and prompt, and before the handler of every input request. An exception,
    such as `Denied`, prevents the act. A repeated request needs no new permission."""
    restart: bool = False
    """True if a server that a command started is restarted after it has ended, by the next call and with a new
    session. Its pending calls raise ConnectionError unless they are safe to repeat. If the server ends repeatedly,
    the pauses before it is restarted get longer, up to 30 seconds."""
    reconnect: bool = True
    """True if the connection to a server at a URL is reopened when it is lost, or when the server has forgotten the
    session."""
    heartbeat_seconds: float | None = 30.0
    """Seconds of silence, while there are subscriptions and no calls, after which the server is pinged; if it does
    not answer within the same time, the connection is considered lost. None disables pings."""
    probe_seconds: float = 5.0
    """Seconds for which the mode "auto" waits for the answer to its stateless request; older servers may never answer
    it."""
    opening_seconds: float | None = None
    """Seconds that a server has to start and to answer, if no other era can be tried. None means a minute."""
    cache_bytes: int = CACHE_BYTES
    """The size of the cache of lists and reads for the typed calls; results are used as long as the server allows.
    With 0 nothing is cached, and callers do not share requests either."""
    cache: ResponseCache | None = None
    """A cache that several clients share, in place of one for each client. All clients of a server then share its
    public results."""
    cache_key: Hashable = field(default=None, repr=False)
    """The server's key in a shared cache; `connect` uses the URL or the command."""

    def accepted_versions(self) -> tuple[Version, ...]:
        """Return the accepted versions, oldest first. Raises ValueError if there are none."""
        versions = versions_between(self.min_version, self.max_version)
        if self.dialect is not None:
            # Requests in a dialect are made in the form of the stateless version, and then translated.
            if self.dialect not in CLIENT_DIALECTS:
                raise ValueError(f"the dialect must be {' or '.join(CLIENT_DIALECTS)}, not {self.dialect!r}")
            if self.mode not in ("auto", "stateless"):
                raise ValueError(f"a dialect has no protocol versions: omit the mode {self.mode!r}")
            return (first_version("stateless", versions),)
        first = first_version(self.mode, versions)
        return tuple(version for version in versions if self.mode == "auto" or version.stateless is first.stateless)

    def identity(self) -> ClientIdentity:
        """Return the client's description of itself."""
        handler_capabilities: dict[str, Any] = {}
        modes = {"form": self.elicit, "url": self.elicit_url}
        if any(modes.values()):
            handler_capabilities["elicitation"] = {mode: {} for mode, handler in modes.items() if handler is not None}
        if self.sample is not None:
            handler_capabilities["sampling"] = {"tools": {}} if self.sample_tools else {}
        if self.roots is not None:
            handler_capabilities["roots"] = {"listChanged": True}
        capabilities = {**handler_capabilities, **self.capabilities}
        if self.relay is None and (self.cache_bytes if self.cache is None else self.cache.max_bytes):
            capabilities["extensions"] = {CONDITIONAL_READS: {}, **capabilities.get("extensions", {})}
        info = {"name": self.name, "version": self.version} if self.info is None else self.info
        # With a relay, support for tasks is declared for each caller separately.
        has_tasks = self.tasks and self.relay is None
        extensions: dict[str, Any] = {TASKS: {}} if has_tasks else {}
        verbs = {"elicitation": "create", "sampling": "createMessage"}
        requests: dict[str, Any] = {kind: {verb: {}} for kind, verb in verbs.items() if kind in handler_capabilities}
        tasks: dict[str, Any] = {"cancel": {}, "requests": requests} if requests and has_tasks else {}
        log_level = self.log_level or (None if self.on_log is None else "info")
        return ClientIdentity(dict(info), capabilities, log_level, extensions, tasks)
