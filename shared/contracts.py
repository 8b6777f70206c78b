"""Interfaces between the parts of the package, each of which other code can implement.

This module contains only typed protocols, and the records that are passed through them.

Several processes, called replicas, may serve one server together. They share a `Stores`, in Redis for example. Its
`async` methods are called by requests, which wait for them. Its other methods are called by callbacks: they never
wait, and take effect in the order of the calls. The store in memory is for a single process, and its `async` methods
never suspend. Those of any other store raise OSError while it can't be reached. In such a store, each replica holds a
lease. A replica that can't renew its lease is given up by the others, which answer the requests that it has left
unanswered. It may no longer act then, and continues as a new replica, without any of its former state.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from .protocol.identity import Principal
from .protocol.records import record
from .protocol.session.events import Change, Outgoing
from .protocol.session.handshake import Snapshot
from .protocol.types.tasks import TaskStatus
from .protocol.wire.jsonrpc import Message

if TYPE_CHECKING:  # only HTTP needs these
    from .errors import LimitExceeded
    from .protocol.http.rules import Denial, HttpRequest, Refusal
    from .protocol.wire.framing import ServerSentEvent
    from .protocol.wire.jsonrpc import RequestId

__all__ = [
    "Authenticator",
    "Blobs",
    "Bus",
    "ByteStream",
    "CachingAuthenticator",
    "ClosableTransport",
    "Credentials",
    "EventLog",
    "EventReader",
    "EventStream",
    "ImmediateReceiver",
    "ImmediateStream",
    "ImmediateTransport",
    "InteractiveCredentials",
    "Limiter",
    "Notice",
    "Observer",
    "Post",
    "Quota",
    "Rate",
    "RemoteAuthenticator",
    "ReplayLimits",
    "Replica",
    "ReplicaWatcher",
    "SessionEvents",
    "SessionRecord",
    "SessionStore",
    "Stores",
    "TaskLimits",
    "TaskRecord",
    "TaskStore",
    "Transport",
]


class Transport(Protocol):
    """A two-way stream of messages with one peer. `serve` uses it for a server, and `Client` for a client."""

    async def receive(self) -> Sequence[Message]:
        """Return the next messages, as many as have arrived; wait for at least one.

        Raises `anyio.EndOfStream` when the peer has ended the stream cleanly; the requests in progress are then
        finished and answered. Raises `anyio.BrokenResourceError` when the peer has disconnected; the requests in
        progress are then cancelled.
        """

    async def send(self, outgoing: Sequence[Outgoing]) -> None:
        """Send messages in order; wait while the peer is too slow to read them.

        Raises `anyio.BrokenResourceError` when the peer has disconnected.
        """


class ClosableTransport(Transport, Protocol):
    """A transport that its user closes, as a client does."""

    async def aclose(self) -> None:
        """Close the connection cleanly. Never raises; may be called twice."""


@runtime_checkable
class ImmediateTransport(Protocol):
    """An optional addition to a transport, which can send messages immediately, without a turn of the event loop."""

    def try_send(self, outgoing: Sequence[Outgoing]) -> bool:
        """Send messages in order if this is possible without waiting. Otherwise, or if the peer has disconnected,
        return False and send nothing."""


@runtime_checkable
class ImmediateReceiver(Protocol):
    """An optional addition to a transport, which can pass on messages as soon as they arrive, without a turn of the
    event loop."""

    def receive_by(self, handle: Callable[[Sequence[Message]], Sequence[Message]]) -> None:
        """Call `handle` with messages as soon as they arrive, while `receive` is waiting. `handle` returns those that
        it did not handle; only these are returned by `receive`."""


class ByteStream(Protocol):
    """A two-way stream of bytes with one peer, from which `framed` makes a transport. Implement this for a custom
    transport without message boundaries of its own, such as a socket. The byte streams of anyio qualify."""

    async def receive(self) -> bytes:
        """Return the next bytes, as many as have arrived; wait for at least one.

        Returns `b""` or raises `anyio.EndOfStream` when the peer has ended the stream cleanly. Raises OSError or
        `anyio.BrokenResourceError` when the peer has disconnected.
        """

    async def send(self, data: bytes, /) -> None:
        """Send all of `data`; wait while the peer is too slow to read it. Raises the same errors as `receive` when
        the peer has disconnected."""

    async def aclose(self) -> None:
        """Close the stream cleanly. Never raises; may be called twice."""


@runtime_checkable
class ImmediateStream(Protocol):
    """An optional addition to a byte stream, which makes its transport an `ImmediateTransport`."""

    def try_send(self, data: bytes, /) -> bool:
        """Send all of `data` if this is possible without waiting. Otherwise, or if the peer has disconnected, return
        False and send nothing."""


class Authenticator(Protocol):
    """Identifies the sender of an HTTP request. It is called once for each request, before any other processing."""

    async def authenticate(self, request: "HttpRequest") -> "Principal | Denial | None":
        """Return the sender of `request`, a denial, or None for an anonymous sender, who is served. Never raises."""


@runtime_checkable
class CachingAuthenticator(Authenticator, Protocol):
    """An authenticator that remembers tokens, since checking a new one costs work, here or on another server."""

    def knows(self, request: "HttpRequest") -> bool:
        """Return True if it can identify the sender of `request` without that work. Neither waits nor raises."""


@runtime_checkable
class RemoteAuthenticator(Authenticator, Protocol):
    """An authenticator that depends on issuers of tokens, which are other servers."""

    async def reach_issuers(self) -> None:
        """Contact each issuer until it has answered once. Never raises."""

    @property
    def unreached(self) -> str | None:
        """A description of the issuers while none of them has answered; None after the first answer."""


class Credentials(Protocol):
    """Identifies a client to a remote server. It is called before each HTTP request, and after each response."""

    async def headers(self, method: str, url: str) -> Mapping[str, str]:
        """Return the headers to add to a request, with names in lower case. Obtains a token first if necessary, and
        raises `AuthError` if that fails."""

    async def answered(self, method: str, url: str, status: int, headers: Mapping[str, str]) -> bool:
        """Handle the response to a request. Return True if the request should be sent again, with the headers that
        `headers` then returns. The names in the parameter `headers` may have any case. Raises `AuthError` if the
        authorization that the server requires can't be obtained."""


@runtime_checkable
class InteractiveCredentials(Credentials, Protocol):
    """Credentials for which a person may have to log in while a request waits, such as `OAuth` with a redirect.
    `connect_http` allows such requests more time."""

    @property
    def may_wait_for_person(self) -> bool:
        """True if a person is available to log in."""


@record
class Rate:
    """A limit on the rate of an action."""

    per_second: float
    burst: float
    """The number of actions allowed at once after a pause: the capacity of the token bucket."""


class Limiter(Protocol):
    """Limits the rate of actions, counted separately for each key: a token bucket per key."""

    async def take(self, key: str, rate: Rate, cost: float = 1.0) -> float:
        """Take `cost` tokens from the bucket of `key`, which is filled at `rate`. Return 0 if the action may be done
        now. Otherwise take nothing, and return the number of seconds to wait. An action that costs more than the
        burst is allowed once the bucket is full."""

    def spend(self, key: str, rate: Rate, cost: float) -> None:
        """Take `cost` tokens for an action that has already been done. If the bucket has fewer, later actions wait
        longer. Never waits."""


class Quota(Protocol):
    """Limits how many calls each client of a server may have in progress. Its methods neither wait nor raise. An HTTP
    listener provides a quota (`transports/http/limits`); a custom transport sets its own in `Run.hooks`."""

    def begin(self, client: str) -> "LimitExceeded | None":
        """Count a call from `client` as in progress until `end`, and return None. If the client already has too many
        calls, count nothing and return the error to send."""

    def end(self, client: str) -> None:
        """End a call from `client`."""


class Observer(Protocol):
    """An observer of every message of a connection, such as a trace or a counter. Its methods neither wait nor
    raise."""

    def on_received(self, message: Message) -> None:
        """Record a message that was received."""

    def on_sent(self, outgoing: Sequence[Outgoing]) -> None:
        """Record messages that are being sent."""


class Stores(Protocol):
    """The state that the replicas of one server share, e.g. `shared.stores.memory.Stores`."""

    def join(self) -> "AbstractAsyncContextManager[Replica]":
        """Return a context manager that makes the caller a replica during its block. After it, the other replicas
        take over its work."""


class ReplicaWatcher(Protocol):
    """Receives the events of a replica and of the other replicas. Its methods neither wait nor raise."""

    def on_lost(self) -> None:
        """Handle the loss of this replica: its lease has expired, and the other replicas have taken over its
        sessions, which end here."""

    def on_return(self) -> None:
        """Handle the return of this replica after a disconnection or a loss. It has missed everything that the other
        replicas published in the meantime."""

    def on_departure(self) -> None:
        """Handle the departure of another replica, which has ended or was given up."""


class Replica(Protocol):
    """The view that one replica has of the shared stores."""

    @property
    def number(self) -> int:
        """The number of this replica, below 2^20. No other replica, present or past, has had it. It changes if the
        replica is lost, because it then continues as a new one."""

    @property
    def secret(self) -> bytes:
        """The key with which all replicas sign cursors if none was configured."""

    @property
    def disconnect_reason(self) -> str | None:
        """The reason why the store can't be reached, in plain words; None if it can be reached."""

    def watch(self, watcher: ReplicaWatcher) -> None:
        """Call the methods of `watcher` on events of this replica and of the others, from now on."""

    @property
    def sessions(self) -> "SessionStore":
        """The sessions of all replicas."""

    @property
    def bus(self) -> "Bus":
        """The connection to the other replicas."""

    @property
    def limiter(self) -> "Limiter":
        """The rate limiter that all replicas share."""

    @property
    def blobs(self) -> "Blobs":
        """Data that replicas store for each other."""

    def log(self, limits: "ReplayLimits") -> "EventLog":
        """Return the event log of all replicas. Each of them must pass the same limits."""

    def tasks(self, limits: "TaskLimits") -> "TaskStore":
        """Return the task store of all replicas. Each of them must pass the same limits."""


@record
class SessionRecord:
    """A session in the form that a store holds."""

    id: str
    principal: Principal | None
    """The owner; the session is unknown to anyone else."""
    client: str
    """The client that opened the session, named by its address and principal for quotas."""
    idle_seconds: float
    """The number of seconds for which the session is stored while no replica holds it."""
    snapshot: Snapshot


@record
class Post:
    """A POST from a client of the HTTP+SSE transport (2024-11-05) that arrived at a replica other than the one that
    has the client's event stream."""

    body: bytes
    principal: Principal | None
    """The sender, which the receiving replica compares with the owner of the session."""
    version: str | None = None
    """The value of its `MCP-Protocol-Version` header."""


@record
class Notice:
    """A message from one replica to another about the session with the id `session`. At most one of the other fields
    is given; if none is, the session has ended."""

    session: str
    message: Message | None = None
    """A message of the client for a request that runs on the receiving replica, such as its cancellation."""
    snapshot: Snapshot | None = None
    """The new state of the session."""
    uri: str | None = None
    """A resource whose changes the receiving replica no longer has to report."""
    post: Post | None = None
    """A message for the event stream of an HTTP+SSE client, which only the receiving replica has."""


class SessionStore(Protocol):
    """The sessions, each with its owner, the replicas that hold it because they have served a request of it, and the
    replica that serves each request in progress."""

    async def create(self, record: "SessionRecord") -> None:
        """Add a session, which this replica holds. Called before the client receives its id."""

    async def enter(
        self, id: str, principal: "Principal | None", request_ids: "Sequence[RequestId]" = ()
    ) -> "tuple[SessionRecord, bool] | None":
        """Return the session with that id for the requests `request_ids` from `principal`, or None if the principal
        has no such session. This replica holds the session from now on. The second value is True if this replica
        serves the requests from now on; it is False if any of them is already being served, on any replica."""

    def leave(self, id: str, request_ids: "Sequence[RequestId]") -> None:
        """Record that `request_ids` can be used again: the requests were answered or abandoned. Never waits."""

    async def serving_replica(self, id: str, request_id: "RequestId") -> int | None:
        """Return the number of the replica that serves that request; None if no replica does."""

    async def update(self, id: str, before: "Snapshot", after: "Snapshot") -> None:
        """Change the stored state of a session as it was changed here, from `before` to `after`, and keep the changes
        that other replicas made (see `merge`). Replicas that hold a different state of the session receive the new
        one over their bus."""

    def watch(self, id: str, uri: str, *, is_watched: bool) -> None:
        """Record that this replica reports changes of the resource `uri` to the client or, if `is_watched` is False,
        that none does. The replica that reported them before is notified over its bus. Never waits."""

    async def adopt(self, id: str) -> Sequence[str]:
        """Take over the subscriptions of the client that no replica serves any more, and return their URIs."""

    async def lapse(self, id: str, *, is_busy: bool) -> bool:
        """Record that this replica received no request for the session during the idle time. If all replicas that
        hold the session have recorded this since its last request, the session ends, and True is returned. Otherwise
        this replica no longer holds the session, unless it is still in use here (`is_busy`)."""

    def release(self, id: str) -> None:
        """Record that this replica no longer holds the session. Other replicas can still serve it; if none holds it,
        it ends after its idle time. Never waits."""

    def delete(self, id: str) -> None:
        """End a session. The other replicas that hold it are notified over their bus. Never waits."""

    async def settle(self) -> None:
        """Wait until the earlier calls have taken effect in the store. Raises Unavailable if that is unknown."""


class Bus(Protocol):
    """The connection of one replica to the others. Notices from one sender arrive in the order in which they were
    sent."""

    def receive(self, handler: "Callable[[Notice], None]") -> None:
        """Call `handler` with each notice for this replica, including those that arrived before this call."""

    async def deliver(self, replica: int, notice: "Notice") -> bool:
        """Send a notice to the replica with that number. Return False if that replica was already given up."""

    def publish(self, run_id: str, change: Change) -> None:
        """Notify all other replicas of a change in the run `run_id`. Servers that open a run for each principal use
        the principal's name as its id; all others use "". Never waits."""

    def listen(self, handler: Callable[[str, Change], None]) -> None:
        """Call `handler` with the run and the change whenever another replica publishes a change."""


class Blobs(Protocol):
    """Data that replicas store for each other, by name and for a limited time."""

    async def put(self, data: bytes, seconds: float, name: str | None = None) -> str:
        """Store `data` for `seconds`. Return its name: `name`, or a new one that can't be guessed."""

    async def get(self, name: str) -> bytes | None:
        """Return the data stored under that name; None if there is none."""

    async def claim(self, name: str, seconds: float) -> bool:
        """Claim that name for `seconds`, so that only one replica does some work. Return False if another claim to it
        has not expired."""


@record
class ReplayLimits:
    """Limits for the messages that are stored for clients that reconnect."""

    stream_bytes: int = 1_048_576
    """Maximum number of bytes that the reader of a stream may be behind."""
    replay_bytes: int = 1_048_576
    """Maximum number of bytes that one stream stores; an answer of any size is stored."""
    replay_events: int = 1_000
    """Maximum number of messages that one stream stores."""
    replay_streams: int = 100
    """Maximum number of ended streams that a session stores."""
    session_replay_bytes: int = 4 * 1_048_576
    """Maximum number of bytes that all streams of a session store together."""
    total_replay_bytes: int = 256 * 1_048_576
    """Maximum number of bytes that all sessions store together."""
    replay_seconds: float = 60.0
    """The number of seconds for which a stream is stored after it has ended or lost its reader."""


class EventLog(Protocol):
    """The event streams of all sessions, whose messages are numbered so that a client can reconnect and continue."""

    def session(self, id: str) -> "SessionEvents":
        """Return the streams of one session, which all replicas share."""

    def drop(self, id: str) -> None:
        """Delete the streams of a session that has ended. They must have been closed."""


class SessionEvents(Protocol):
    """The streams of one session: one for each POST, and the session's own stream for messages that belong to no
    request (the one that a client opens by GET)."""

    def stream(self, ids: "tuple[RequestId, ...]") -> "EventStream":
        """Create a stream for the answers to the requests `ids`. Other replicas can't find it before `show`."""

    def session_stream(self) -> "EventStream":
        """Return the session's own stream, for adding messages."""

    async def find(self, name: str | None = None) -> "EventStream | None":
        """Return the stream with that name, or without a name the session's own stream, in its current state, for
        reading. If a lost replica left requests of the stream unanswered, they are answered."""

    def notify_taken(self) -> None:
        """Call the functions of `watch_taken`, because a reader has taken its messages: senders that waited for this
        may continue."""

    def watch_taken(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` each time a reader has taken messages, until the returned function is called."""

    def make_room(self) -> None:
        """Delete the oldest stored messages while all of them exceed the limits. Called after messages were added."""

    def close(self, refusal: "Refusal") -> None:
        """End all streams of the session that other replicas can find. Those that still owe an answer end with
        `refusal`, and those without a reader are deleted."""

    def release(self) -> None:
        """Free the memory that the session takes on this replica; the session continues on others."""


class EventReader(Protocol):
    """The reader of a stream: an HTTP response, or a custom transport whose clients can reconnect. The log calls its
    methods, which never wait."""

    def wake(self) -> None:
        """Handle the arrival of messages, which `take` returns, or the end of the stream."""

    def pause(self, retry_ms: int) -> None:
        """Stop reading; the stream continues, and the client should reconnect after `retry_ms` milliseconds."""

    def cancel(self) -> None:
        """Stop reading at once, because the reader is too far behind, or another reader has replaced it."""


class EventStream(Protocol):
    """The numbered messages of one stream. It has at most one reader, on any replica: the one that began last."""

    ids: "tuple[RequestId, ...]"
    """The requests that the stream answers; empty for the session's own stream."""
    name: str
    """The name by which a client reconnects to the stream; empty until `show` is called."""
    answered: bool
    """True if the last message is the last answer that the stream owes."""
    is_over: bool
    """True if no more messages will be added."""
    is_lost: bool
    """True if the stream will not be read any more, because its client has left and can't reconnect."""
    refusal: "Refusal | None"
    """The error to send instead of an answer, if the session ended before the answer."""
    reader: "EventReader | None"
    """The reader, if it is on this replica."""

    # Writing, which never waits

    def put(self, message: bytes, *, once: bool = False, everywhere: bool = False) -> None:
        """Add a message; with `once`, only if no equal message waits for the reader. `everywhere` says that every
        replica that holds the session adds this message: only the copy of the replica that has the reader counts or,
        without a reader, the first copy. Cuts off a reader that is too far behind."""

    def exceeds_limit(self, message: bytes) -> bool:
        """Return True if there is a reader and, with `message`, it would be further behind than the limit allows."""

    def answer(self, message: bytes) -> None:
        """Add the last answer, even if the reader is too far behind, and end the stream."""

    def end(self, refusal: "Refusal | None" = None) -> None:
        """End the stream. `refusal` is sent instead of an answer that the stream still owes; None means that the
        requests were cancelled, so no client reconnects for their answers."""

    def pause(self, retry_ms: int) -> None:
        """Call `pause` of the reader, if there is one."""

    def pending_replication(self) -> Awaitable[None] | None:
        """Return an awaitable that completes when the store has all added messages. It is awaited before they are
        sent, so that another replica can send them again. None if the store already has them."""

    # Reading

    def read(self, reader: EventReader, after: int | None = None) -> None:
        """Make `reader` the reader of all messages after number `after`, or by default of those that were not taken
        yet. The previous reader is cut off. The messages are available after `pending_replication`. If some of them
        are no longer stored, the new reader is cut off too, but remains the reader."""

    def take(self) -> "list[ServerSentEvent]":
        """Return the messages that the reader has not taken yet. From now on they count as sent."""

    def leave(self, reader: EventReader) -> None:
        """Record that `reader` has stopped reading. If its client can't reconnect, the stream has no reader."""

    def show(self) -> str:
        """Make the stream available to all replicas, so that its client may reconnect. Return its name, which is part
        of the ids of its events."""

    def position_event(self, retry_ms: int) -> "ServerSentEvent":
        """Return an event without data: its id is the client's position, and its `retry` the number of milliseconds
        after which to reconnect."""

    def has(self, number: int) -> bool:
        """Return True if there has been a message with that number, or it is 0, the position before the first one."""

    def has_all_after(self, number: int) -> bool:
        """Return True if every message after that number is stored."""

    @property
    def is_read(self) -> bool:
        """True if the stream has a reader."""

    @property
    def is_all_sent(self) -> bool:
        """True if the reader has taken all messages that were added."""

    @property
    def sole_answer(self) -> bytes | None:
        """The answer, if it is the only message and the client can't reconnect; None otherwise."""

    def forget(self) -> None:
        """Delete all stored messages."""


@record
class TaskLimits:
    """Limits on the tasks of one server."""

    total: int = 10_000
    """Maximum number of stored tasks, running or ended."""
    of_one_client: int = 1_000
    """Maximum number of tasks of one client: one principal, or one session or address of unauthenticated clients."""
    result_bytes: int = 64 * 1024 * 1024
    """Maximum number of bytes of all results together, as JSON. If there are several clients, one of them may use at
    most half. An error of at most a kilobyte is always stored."""
    seconds: float = 3_600.0
    """The number of seconds for which a task is stored, from its creation. It can't run longer either."""


@record
class TaskRecord:
    """A task in the form that a store holds. It is immutable: a new record replaces it."""

    id: str
    """An id that can't be guessed, because an unauthenticated client needs nothing else to access the task."""
    form: str
    """The methods that can access the task: those of the tasks extension, or those of version 2025-11-25."""
    principal: str | None
    """The key of the owner; None for an unauthenticated client."""
    client: str
    """The client that began the task, towards whose limits it counts."""
    created: float
    """Seconds since 1970, like `updated`."""
    updated: float
    seconds: float
    """The number of seconds for which the task is stored, from its creation."""
    status: TaskStatus = "working"
    message: str | None = None
    """The progress of the task, or the reason for its end, for people."""
    questions: Mapping[str, Any] = field(default_factory=dict)
    """The requests to the client (such as elicitation) whose answers the task waits for: method and params by key. A
    key is never reused."""
    answers: Mapping[str, Any] = field(default_factory=dict)
    """The answers that have arrived and that the task has not taken yet, by key: `{"result": ...}` or `{"error":
    ...}`."""
    outcome: Mapping[str, Any] | None = None
    """The end of the task: `{"result": ...}` or `{"error": ...}`; None while it runs."""
    revision: int = 0
    """The number of changes so far. `replace` uses it to detect conflicting changes."""
    scopes: frozenset[str] = frozenset()
    """The scopes that a token needs to read the task, because the call needed them."""


class TaskStore(Protocol):
    """The tasks of a server. A task that has expired is no longer found."""

    async def create(self, task: "TaskRecord") -> bool:
        """Store a new task, before the client receives its id. Return False if there are too many tasks."""

    async def get(self, id: str) -> "TaskRecord | None":
        """Return the task with that id; None if there is none."""

    async def replace(self, before: "TaskRecord", after: "TaskRecord") -> bool:
        """Replace the record `before` with `after`, which has the next revision. Return False if `before` is no
        longer the stored record. Raises OverflowError if the results of all tasks would exceed the limit, but never
        for an error of at most 1,024 bytes."""

    async def forget(self, id: str) -> None:
        """Delete a task."""

    async def list_by_owner(self, principal: str) -> Sequence["TaskRecord"]:
        """Return the tasks of a principal, the oldest first."""

    def listen(self, id: str, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` each time that the task is replaced, expires or is deleted, until the returned function is
        called. Neither waits nor raises."""
