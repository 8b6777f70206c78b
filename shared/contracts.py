"""Contracts between the parts of the package, each of which other code can implement.

Typed protocols and the records that pass through them; nothing here runs.

Several processes, called replicas, may serve one server together. They share `Stores`. A request may wait for its
`async` methods; the methods that callbacks call never wait, and take effect in the order of the calls. In memory no
`async` method ever suspends; elsewhere they raise OSError while the other replicas can't be reached. A replica holds
a lease there. The others give up a replica that could not renew its lease, and answer the requests that it had not
answered; it may no longer act, and continues as a new replica, without any of its former state.
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
    "InteractiveCredentials",
    "Limiter",
    "Notice",
    "Observer",
    "Post",
    "PromptReceiver",
    "PromptStream",
    "PromptTransport",
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
    """A two-way stream of messages with one peer: `serve` drives it for a server, `Client` for a program."""

    async def receive(self) -> Sequence[Message]:
        """Return the next messages, as many as have arrived; wait for at least one.

        Raises `anyio.EndOfStream` when the peer has ended the stream cleanly: requests in progress are finished and
        answered. Raises `anyio.BrokenResourceError` when the peer has disconnected: requests in progress are
        cancelled.
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
class PromptTransport(Protocol):
    """An optional addition to a transport: messages are sent at once, without a turn of the event loop."""

    def try_send(self, outgoing: Sequence[Outgoing]) -> bool:
        """Send messages in order if this is possible without waiting. Otherwise, or if the peer has disconnected,
        return False and send nothing."""


@runtime_checkable
class PromptReceiver(Protocol):
    """An optional addition to a transport: messages are taken at once, without a turn of the event loop."""

    def receive_by(self, take: Callable[[Sequence[Message]], Sequence[Message]]) -> None:
        """Pass messages to `take` when they arrive, while `receive` is waiting; `receive` returns only the messages
        that `take` returns."""


class ByteStream(Protocol):
    """A two-way stream of bytes with one peer, from which `framed` makes a transport. Implement this for a custom
    transport whose messages are delimited only by their text. The byte streams of anyio qualify."""

    async def receive(self) -> bytes:
        """Return the next bytes, as many as have arrived; wait for at least one.

        `b""` when the peer has ended the stream, for which `anyio.EndOfStream` may be raised as well. Raises OSError
        or `anyio.BrokenResourceError` when the peer has disconnected.
        """

    async def send(self, data: bytes, /) -> None:
        """Send all of `data`; wait while the peer is too slow to read it. Raises the same errors as `receive` when
        the peer has disconnected."""

    async def aclose(self) -> None:
        """Close the stream cleanly. Never raises; may be called twice."""


@runtime_checkable
class PromptStream(Protocol):
    """An optional addition to a byte stream, which makes its transport a `PromptTransport`."""

    def try_send(self, data: bytes, /) -> bool:
        """Send all of `data` if this is possible without waiting. Otherwise, or if the peer has disconnected, return
        False and send nothing."""


class Authenticator(Protocol):
    """Identifies the sender of an HTTP request. It is called once for each request to this server, before anything
    else."""

    async def authenticate(self, request: "HttpRequest") -> "Principal | Denial | None":
        """Return the sender of `request`; None for an anonymous sender, who is served as well. Never raises."""


@runtime_checkable
class CachingAuthenticator(Authenticator, Protocol):
    """An authenticator for which an unknown token causes work, here or on another server."""

    def knows(self, request: "HttpRequest") -> bool:
        """Return True if the authenticator can identify the sender of `request` without that work. Never waits or
        raises."""


@runtime_checkable
class RemoteAuthenticator(Authenticator, Protocol):
    """An authenticator that needs issuers of tokens on other machines."""

    async def reach_issuers(self) -> None:
        """Contact each issuer until it has answered once. Never raises."""

    @property
    def unreached(self) -> str | None:
        """A description of the issuers if none of them has answered yet; None after the first answer."""


class Credentials(Protocol):
    """Identifies a client to a server behind a URL. It is called for each HTTP request, and with each answer."""

    async def headers(self, method: str, url: str) -> Mapping[str, str]:
        """Return the headers, with names in lower case, for a request, obtaining a token first if necessary. Raises
        `AuthError` if that fails."""

    async def answered(self, method: str, url: str, status: int, headers: Mapping[str, str]) -> bool:
        """Handle the answer to a request; return True if the request is to be sent again, with other headers. The
        case of the names in `headers` does not matter. Raises `AuthError` if the authorization that the server
        requires can't be obtained."""


@runtime_checkable
class InteractiveCredentials(Credentials, Protocol):
    """Credentials for which a person may have to log in while a request waits: `OAuth` with a redirect, or a custom
    class. `connect_http` gives such requests more time."""

    @property
    def may_wait_for_person(self) -> bool:
        """True if a person is available to log in."""


@record
class Rate:
    """A limit on the rate of an action."""

    per_second: float
    burst: float
    """The number allowed at once when the allowance is full."""


class Limiter(Protocol):
    """Counts actions by key and limits their rate."""

    async def take(self, key: str, rate: Rate, cost: float = 1.0) -> float:
        """Take `cost` from the allowance of `key` under `rate`. Return 0 if the action may be done now; otherwise
        nothing is taken, and the result is the number of seconds to wait. An action that costs more than the burst is
        allowed once the allowance is full."""

    def spend(self, key: str, rate: Rate, cost: float) -> None:
        """Take `cost` for an action that has already been done, even beyond the allowance: later actions wait longer.
        Never waits."""


class Quota(Protocol):
    """Limits how many calls each client that shares a server may have in progress. It never waits or raises. A
    listener provides a quota (`transports/http/limits`); a custom transport sets its own in `Run.hooks`."""

    def begin(self, client: str) -> "LimitExceeded | None":
        """Begin a call of `client`, which is counted until `end`. Return the refusal if the client has too many
        calls, otherwise None."""

    def end(self, client: str) -> None:
        """End a call of `client`."""


class Observer(Protocol):
    """An observer of every message of a connection, such as a trace or a counter. It never waits or raises."""

    def on_received(self, message: Message) -> None:
        """Record a message that was received."""

    def on_sent(self, outgoing: Sequence[Outgoing]) -> None:
        """Record messages that are being sent."""


class Stores(Protocol):
    """The state that the replicas of one server share, e.g. `shared.stores.memory.Stores`."""

    def join(self) -> "AbstractAsyncContextManager[Replica]":
        """Make the caller a replica for the duration of the block. Afterwards the other replicas take over its
        work."""


class ReplicaWatcher(Protocol):
    """Receives the events of a replica and of the other replicas. Its methods neither wait nor raise."""

    def on_lost(self) -> None:
        """Handle the loss of this replica: the other replicas have taken over its sessions, which end here."""

    def on_return(self) -> None:
        """Handle the return of this replica to the other replicas. It has missed everything that they published in
        the meantime."""

    def on_departure(self) -> None:
        """Handle the departure of another replica."""


class Replica(Protocol):
    """One of the processes that share stores. Its number is unique, even among earlier replicas."""

    @property
    def number(self) -> int:
        """The number, from 0 to below 2^20; it changes if the replica is lost."""

    @property
    def secret(self) -> bytes:
        """The key with which replicas sign cursors if none was configured: the same for all."""

    @property
    def reason(self) -> str | None:
        """The reason that the others can't be reached, in plain words; None if they are reachable."""

    def watch(self, watcher: ReplicaWatcher) -> None:
        """Notify `watcher` of the events of this replica and of the others while the replica exists."""

    @property
    def sessions(self) -> "SessionStore":
        """The sessions, and the replicas that hold them."""

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
        """Return the stream log, with limits that are the same for all replicas."""

    def tasks(self, limits: "TaskLimits") -> "TaskStore":
        """Return the store of the tasks of all replicas, with limits that are the same for all."""


@record
class SessionRecord:
    """A session in the form that a store holds."""

    id: str
    principal: Principal | None
    """The owner; the session is unknown to anyone else."""
    client: str
    """A name for the client that opened the session: an address and a principal."""
    idle_seconds: float
    """Seconds for which the session is stored while no replica holds it."""
    snapshot: Snapshot


@record
class Post:
    """The body of a POST from an HTTP+SSE client that arrived at a replica other than the one with the stream."""

    body: bytes
    principal: Principal | None
    """The sender, which the receiving replica compares with the owner of the session."""
    version: str | None = None
    """The value of its `MCP-Protocol-Version` header."""


@record
class Notice:
    """A notice from one replica to another about `session`: a message for a request that runs there, the new state of
    the session, a resource whose changes are no longer reported from there, or a message for the stream there, if the
    session consists of that stream only. If all are None, the session has ended."""

    session: str
    message: Message | None = None
    snapshot: Snapshot | None = None
    uri: str | None = None
    post: Post | None = None


class SessionStore(Protocol):
    """The sessions: the owner of each, the replicas that hold it, and the replica that serves each of its requests. A
    session that is not stored here does not exist for the caller."""

    async def create(self, record: "SessionRecord") -> None:
        """Add a session that this replica holds. Called before its id is given to anyone."""

    async def enter(
        self, id: str, principal: "Principal | None", ids: "Sequence[RequestId]" = ()
    ) -> "tuple[SessionRecord, bool] | None":
        """Return the session with that id for a request from `principal`, or None if the principal has no such
        session. This replica holds the session from now on. The second value is True if this replica serves the
        requests `ids` from now on; it is False if any of them is already being served somewhere."""

    def leave(self, id: str, ids: "Sequence[RequestId]") -> None:
        """Free the request ids `ids`, whose requests were answered or abandoned. Never waits."""

    async def owner(self, id: str, request_id: "RequestId") -> int | None:
        """Return the number of the replica that serves that request; None if no replica does."""

    async def update(self, id: str, before: "Snapshot", after: "Snapshot") -> None:
        """Merge a change to the persistent state of a session, from `before` to `after`, with the changes made
        elsewhere: see `merge`. Replicas that hold a different state of the session receive the new one over their
        bus."""

    def watch(self, id: str, uri: str, *, is_watched: bool) -> None:
        """Make this replica report the resource's changes to the client, or stop reporting them. The replica that
        reported them before is notified over its bus. Never waits."""

    async def adopt(self, id: str) -> Sequence[str]:
        """Take over, and return, the resources that the client has subscribed to and that no replica reports any
        more."""

    async def lapse(self, id: str, *, busy: bool) -> bool:
        """Record that this replica received no request for the session during the idle time. Return True if the
        session ended as a result, because all replicas that hold it have recorded the same since the last request.
        Otherwise this replica no longer holds the session, unless it is `busy` with it."""

    def release(self, id: str) -> None:
        """Release the session on this replica. The session continues; while no replica holds it, it ends after its
        idle time. Never waits."""

    def delete(self, id: str) -> None:
        """End a session. The other replicas that hold it are notified over their bus. Never waits."""

    async def settle(self) -> None:
        """Wait until all replicas have applied the earlier calls. Raises Unavailable if it is unknown whether they
        have."""


class Bus(Protocol):
    """The notices that one replica receives from other replicas. Those from one sender are in the order in which they
    were sent."""

    def receive(self, handler: "Callable[[Notice], None]") -> None:
        """Call `handler` once with each notice for this replica, including those that arrived before."""

    async def deliver(self, replica: int, notice: "Notice") -> bool:
        """Send a notice to another replica, which receives it unless it is lost first. Return False if that replica
        is lost."""

    def publish(self, run_id: str, change: Change) -> None:
        """Notify all other replicas of a change in the run `run_id`: the name of principals, or "" for all others.
        Never waits."""

    def listen(self, handler: Callable[[str, Change], None]) -> None:
        """Call `handler` with the run and the change whenever another replica publishes a change."""


class Blobs(Protocol):
    """Data stored by name for a limited time."""

    async def put(self, data: bytes, seconds: float, name: str | None = None) -> str:
        """Store `data` for `seconds`. Return its name: `name`, or a new one that can't be guessed."""

    async def get(self, name: str) -> bytes | None:
        """Return the data stored under that name; None if there is none."""

    async def claim(self, name: str, seconds: float) -> bool:
        """Claim that name for `seconds`. Return False if it was claimed before."""


@record
class ReplayLimits:
    """Limits for the messages that are stored for clients that reconnect."""

    stream_bytes: int = 1_048_576
    """Number of bytes that the reader of a stream may be behind."""
    replay_bytes: int = 1_048_576
    """Number of bytes that one stream stores; an answer of any size is stored."""
    replay_events: int = 1_000
    """Messages that one stream stores."""
    replay_streams: int = 100
    """Ended streams that a session stores."""
    session_replay_bytes: int = 4 * 1_048_576
    """Bytes that all streams of a session store together."""
    total_replay_bytes: int = 256 * 1_048_576
    """Bytes that all sessions store together."""
    replay_seconds: float = 60.0
    """Seconds for which a stream is stored that has ended or has no reader."""


class EventLog(Protocol):
    """The numbered messages of the streams of all sessions."""

    def session(self, id: str) -> "SessionEvents":
        """Return the streams of one session, the same for all replicas."""

    def drop(self, id: str) -> None:
        """Delete a session that has ended, after its streams were closed."""


class SessionEvents(Protocol):
    """The streams of one session: one for each POST, and its own stream for messages that belong to no request."""

    def stream(self, ids: "tuple[RequestId, ...]") -> "EventStream":
        """Create a stream for the answers to `ids`. Only this replica holds it until it is shown."""

    def own(self) -> "EventStream":
        """Return the session's own stream, to put messages on."""

    async def find(self, name: str | None = None) -> "EventStream | None":
        """Return a stream that was shown, or the session's own, in its current state, for reading. If a lost replica
        left requests on the stream unanswered, they are answered."""

    def notify_taken(self) -> None:
        """Notify the watchers that a reader has taken its messages: senders that waited for it may continue."""

    def watch_taken(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` each time a reader has taken messages, until the returned function is called."""

    def make_room(self) -> None:
        """Delete the oldest stored messages while they exceed the limits. Called after messages were put."""

    def close(self, refusal: "Refusal") -> None:
        """End the session's streams: all streams that have been shown end, those without an answer with `refusal`,
        and those without a reader are deleted."""

    def release(self) -> None:
        """Release the session: this caller of the log no longer needs it, but the session continues."""


class EventReader(Protocol):
    """The reader of a stream, as its log sees it: an HTTP response, or a custom transport that can reconnect. None of
    its methods waits."""

    def wake(self) -> None:
        """Handle the arrival of messages to take, or the end of the stream."""

    def pause(self, retry_ms: int) -> None:
        """Stop reading; the stream continues, and the client reconnects after `retry_ms` milliseconds."""

    def cut(self) -> None:
        """Stop reading at once: the reader is too far behind, or another reader has begun."""


class EventStream(Protocol):
    """The numbered messages of one POST, or of no request. There is at most one reader over all replicas: the one
    that began last."""

    ids: "tuple[RequestId, ...]"
    """The requests that the stream answers; empty for the session's own stream."""
    name: str
    """The name; empty until the stream is shown, since before that no client can reconnect to it."""
    answered: bool
    """True if the last message is the answer."""
    is_over: bool
    """True if nothing more will be put."""
    is_lost: bool
    """True if the stream will never be read."""
    refusal: "Refusal | None"
    """The reason that there will be no answer, if the session ended before it."""
    reader: "EventReader | None"
    """The reader on this replica."""

    # Writing, which never waits

    def put(self, message: bytes, *, once: bool = False, everywhere: bool = False) -> None:
        """Add a message; with `once`, only if no equal message waits for a reader. With `everywhere`, every replica
        that holds the session adds the message: only the copy on the reader's replica is sent, or if there is no
        reader, the first copy. Cuts off a reader that is too far behind."""

    def exceeds_limit(self, message: bytes) -> bool:
        """Return True if `message` would exceed the limit on messages that the reader, if there is one, has not taken
        yet."""

    def answer(self, message: bytes) -> None:
        """Add the last message, even if too many are waiting, and end the stream."""

    def end(self, refusal: "Refusal | None" = None) -> None:
        """End the stream; `refusal` is the reason if an answer is still due. Without one the requests were cancelled,
        and no client reconnects for them."""

    def pause(self, retry_ms: int) -> None:
        """Pause the reader, if there is one."""

    def pending_replication(self) -> Awaitable[None] | None:
        """Return an awaitable that completes when other replicas know the messages that were put; await it before
        sending their bytes. None if they already know the messages."""

    # Reading

    def read(self, reader: EventReader, after: int | None = None) -> None:
        """Begin reading with `reader`: the messages that were not taken yet, or all after message number `after`. The
        previous reader is cut off. The messages to take are available after `pending_replication`; if they are not
        all of them, the reader is cut off, and stays."""

    def take(self) -> "list[ServerSentEvent]":
        """Return the messages that the reader has not taken yet, which are considered sent from now on."""

    def leave(self, reader: EventReader) -> None:
        """End reading by `reader`. A stream whose client can't reconnect is lost."""

    def show(self) -> str:
        """Return the name, which is sent with its events: from now on any replica finds the stream, and the client
        may reconnect."""

    def position_event(self, retry_ms: int) -> "ServerSentEvent":
        """Return an event without data that contains the client's position and the milliseconds to wait before it
        reconnects."""

    def has(self, number: int) -> bool:
        """Return True if there has been a message with that number; 0 is the beginning."""

    def has_all_after(self, number: int) -> bool:
        """Return True if every message after that number is stored."""

    @property
    def is_read(self) -> bool:
        """True if the stream has a reader."""

    @property
    def is_all_sent(self) -> bool:
        """True if all messages on the stream so far have been taken."""

    @property
    def sole_answer(self) -> bytes | None:
        """The answer, if it is the only message and no client can reconnect for it."""

    def forget(self) -> None:
        """Delete all stored messages."""


@record
class TaskLimits:
    """Caps for the tasks of one server."""

    total: int = 10_000
    """Maximum number of stored tasks, running or ended."""
    of_one_client: int = 1_000
    """The limit on the tasks of one client: one principal, or one session or address for unauthenticated clients."""
    result_bytes: int = 64 * 1024 * 1024
    """Bytes of all results combined, as JSON; one of several clients must leave as much for the others as it uses.
    There is always room for an error of a kilobyte."""
    seconds: float = 3_600.0
    """Seconds from its creation for which a task is stored, which also limit its running time."""


@record
class TaskRecord:
    """A task in the form that a store holds. It is immutable: a new record replaces it."""

    id: str
    """An id that can't be guessed: unauthenticated clients need only the id to access the task."""
    form: str
    """The methods that may access the task: those of the extension, or those of 2025-11-25."""
    principal: str | None
    """The key of the owner; None for an unauthenticated client."""
    client: str
    """A name for the client that began the task, towards whose share it counts."""
    created: float
    """Seconds since 1970, like `updated`."""
    updated: float
    seconds: float
    """Seconds from its creation for which the task is stored."""
    status: TaskStatus = "working"
    message: str | None = None
    """Its progress, or the reason for its end, in readable text."""
    questions: Mapping[str, Any] = field(default_factory=dict)
    """The requests whose answers the task waits for: method and params by key. A key is never
    reused."""
    answers: Mapping[str, Any] = field(default_factory=dict)
    """The answers that have arrived and were not taken yet, by key: `{"result": ...}`, or `{"error": ...}`."""
    outcome: Mapping[str, Any] | None = None
    """The result: `{"result": ...}`, or `{"error": ...}`."""
    revision: int = 0
    """The number of changes so far."""
    scopes: frozenset[str] = frozenset()
    """The scopes that a token needs for the call, and so for reading the task."""


class TaskStore(Protocol):
    """The tasks of a server, until they expire. An expired task is no longer found."""

    async def create(self, task: "TaskRecord") -> bool:
        """Store a new task. Called before its id is given to anyone. Return False if there are too many."""

    async def get(self, id: str) -> "TaskRecord | None":
        """Return the task with that id."""

    async def replace(self, before: "TaskRecord", after: "TaskRecord") -> bool:
        """Replace `before` by `after`, of the next revision. Return False if `before` is not the stored record.
        Raises OverflowError if the results of all tasks would exceed the limit, but never for an error of at most
        1,024 bytes."""

    async def forget(self, id: str) -> None:
        """Delete a task."""

    async def list_by_owner(self, principal: str) -> Sequence["TaskRecord"]:
        """Return the tasks of a principal, the oldest first."""

    def listen(self, id: str, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` each time that task was replaced, has expired or was deleted, until the returned function is
        called. Neither waits nor raises."""
