"""The seams between the parts: what stands behind each of them can be replaced by something of one's own.

Typed protocols, the records that pass through them, and nothing that runs.

Several processes may serve one server together: its replicas. What they share is behind `Stores`. There a request may
wait for what is `async`; what callbacks call never waits, and takes effect in the order of the calls. In memory none
of it ever suspends; elsewhere what is `async` raises OSError where the others are out of reach. There a replica holds
a lease. One that could not renew it is given up by the others, which answer what it owed; it may not act any more,
and goes on as another one, with nothing of what it had.
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

if TYPE_CHECKING:  # what only HTTP needs
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
    "News",
    "Observer",
    "Post",
    "PromptStream",
    "PromptTransport",
    "Quota",
    "Rate",
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
        """The next messages, as many as are there; waits for at least one.

        Raises `anyio.EndOfStream` when the peer has ended the stream in order: what is under way is finished
        and answered. Raises `anyio.BrokenResourceError` when the peer is gone: what is under way is cancelled.
        """

    async def send(self, outgoing: Sequence[Outgoing]) -> None:
        """Sends messages in their order; waits while the peer is too slow to take them.

        Raises `anyio.BrokenResourceError` when the peer is gone.
        """


class ClosableTransport(Transport, Protocol):
    """A transport that the one who drives it closes: a client does."""

    async def aclose(self) -> None:
        """Ends the connection in order. Never raises; may be called twice."""


@runtime_checkable
class PromptTransport(Protocol):
    """What a transport may be besides: messages leave at once, without a turn of the event loop."""

    def try_send(self, outgoing: Sequence[Outgoing]) -> bool:
        """Sends messages in their order where that takes no waiting; False, and nothing is sent, where it does, or
        where the peer is gone."""


class ByteStream(Protocol):
    """A two-way stream of bytes with one peer, of which `framed` makes a transport: what a transport of one's own
    has to be, where messages have no bounds there but those of their text. The byte streams of anyio are such."""

    async def receive(self) -> bytes:
        """The next bytes, as many as are there; waits for at least one.

        `b""` when the peer has ended the stream, for which `anyio.EndOfStream` may be raised as well. Raises OSError
        or `anyio.BrokenResourceError` when the peer is gone.
        """

    async def send(self, data: bytes, /) -> None:
        """Sends all of `data`; waits while the peer is too slow to take it. Raises like `receive` when the peer is
        gone."""

    async def aclose(self) -> None:
        """Ends the stream in order. Never raises; may be called twice."""


@runtime_checkable
class PromptStream(Protocol):
    """What a byte stream may be besides, so that its transport is prompt."""

    def try_send(self, data: bytes, /) -> bool:
        """Sends all of `data` where that takes no waiting; False, and nothing is sent, where it does, or where the
        peer is gone."""


class Authenticator(Protocol):
    """Says who sends an HTTP request. It is asked once about each that is for this server, before all else."""

    async def authenticate(self, request: "HttpRequest") -> "Principal | Denial | None":
        """The sender of `request`; None is nobody in particular, who is served as well. It raises nothing."""


@runtime_checkable
class CachingAuthenticator(Authenticator, Protocol):
    """An authenticator to which a token that it has not seen before is work, be it its own or another server's."""

    def knows(self, request: "HttpRequest") -> bool:
        """Whether it can tell who sends `request` without that work. It never waits or raises."""


class Credentials(Protocol):
    """Says to a server behind a URL who its client is. It is asked for each HTTP request, and sees each answer."""

    async def headers(self, method: str, url: str) -> Mapping[str, str]:
        """The headers, in small letters, that go with a request; it may obtain a token first. Raises `AuthError`
        where that fails."""

    async def answered(self, method: str, url: str, status: int, headers: Mapping[str, str]) -> bool:
        """Sees what was answered to such a request; whether it is to be sent again, with other headers then. The case
        of the names of `headers` does not matter. Raises `AuthError` where what the server wants can't be had."""


@runtime_checkable
class InteractiveCredentials(Credentials, Protocol):
    """Credentials for which somebody may have to log in while a request waits: `OAuth` with a redirect, or some of
    a program's own, which `connect_http` then gives more time."""

    @property
    def may_wait_for_person(self) -> bool:
        """Whether somebody is there who can."""


@record
class Rate:
    """How often something may be done."""

    per_second: float
    burst: float
    """How much at once, after a time of rest."""


class Limiter(Protocol):
    """Counts what is done, by name, so that nobody does too much."""

    async def take(self, key: str, rate: Rate, cost: float = 1.0) -> float:
        """Takes `cost` of what `rate` allows to `key`; 0 where it may be done now. Else nothing is taken, and this is
        how many seconds to wait. What costs more than the burst may be done after rest."""

    def spend(self, key: str, rate: Rate, cost: float) -> None:
        """Takes `cost` for what was done already, whatever is allowed: others have to wait for longer. Never
        waits."""


class Quota(Protocol):
    """Says how many calls those who share a server may have under way. It never waits or raises. A listener has one
    (`transports/http/limits`); a transport of one's own gives another to `Run.hooks`."""

    def begin(self, client: str) -> "LimitExceeded | None":
        """A call of `client` is to begin; why it may not, where it may not. Else it counts until `end`."""

    def end(self, client: str) -> None:
        """A call of `client` has ended."""


class Observer(Protocol):
    """Sees every message of a connection, besides the two that speak: a trace, or what counts. It never waits or
    raises."""

    def received(self, message: Message) -> None:
        """Takes note of what came."""

    def sent(self, outgoing: Sequence[Outgoing]) -> None:
        """Takes note of what leaves."""


class Stores(Protocol):
    """What the replicas of one server share, e.g. `shared.stores.memory.Stores`."""

    def join(self) -> "AbstractAsyncContextManager[Replica]":
        """Makes the caller a replica as long as the block. What it has left behind then, the others go on with."""


class ReplicaWatcher(Protocol):
    """Who hears what becomes of a replica and of the others. Neither waits nor raises."""

    def lost(self) -> None:
        """The others have given this replica up: what it has of sessions is theirs now, and ends here."""

    def returned(self) -> None:
        """It is one of the others again. What they told of meanwhile it has missed."""

    def left(self) -> None:
        """One of the others is gone."""


class Replica(Protocol):
    """One of those who share stores. Its number tells it from the others, and from those before it."""

    @property
    def number(self) -> int:
        """From 0 on, and below 2^20; another one after it was lost."""

    @property
    def secret(self) -> bytes:
        """What replicas sign cursors with, where they were given no key: the same for all."""

    @property
    def reason(self) -> str | None:
        """Why the others are out of reach, in plain words; None where they are not."""

    def watch(self, watcher: ReplicaWatcher) -> None:
        """Has `watcher` hear what becomes of this replica and of the others, as long as it is there."""

    @property
    def sessions(self) -> "SessionStore":
        """Who has a session."""

    @property
    def bus(self) -> "Bus":
        """The way to the other replicas."""

    @property
    def limiter(self) -> "Limiter":
        """What has been done of late, and by whom, at all replicas."""

    @property
    def blobs(self) -> "Blobs":
        """What replicas keep for each other."""

    def log(self, limits: "ReplayLimits") -> "EventLog":
        """What streams keep, within limits, which are the same for all replicas."""

    def tasks(self, limits: "TaskLimits") -> "TaskStore":
        """The tasks of all replicas, within limits, which are the same for all."""


@record
class SessionRecord:
    """A session as its store has it."""

    id: str
    principal: Principal | None
    """Whose it is: to anybody else it is unknown."""
    client: str
    """A name for whoever has opened it, an address and a principal."""
    idle_seconds: float
    """How long it is kept where no replica has it."""
    snapshot: Snapshot


@record
class Post:
    """What a client of HTTP+SSE has posted at another replica than the one that has its stream."""

    body: bytes
    principal: Principal | None
    """Who has sent it, which that replica compares with whose the session is."""
    version: str | None = None
    """What its `MCP-Protocol-Version` header says."""


@record
class News:
    """What one replica tells another one about `session`: a message for what runs there, how the session is now,
    a resource that is no longer told of there, or a message for the stream that is there, of which alone the session
    consists. None of them: it has ended."""

    session: str
    message: Message | None = None
    snapshot: Snapshot | None = None
    uri: str | None = None
    post: Post | None = None


class SessionStore(Protocol):
    """Who a session is, which replicas have it, and where each of its requests is being served. To whom it is not
    known here a session does not exist."""

    async def create(self, record: "SessionRecord") -> None:
        """Adds a session, which this replica has. Done before its id is told to anybody."""

    async def enter(
        self, id: str, principal: "Principal | None", ids: "Sequence[RequestId]" = ()
    ) -> "tuple[SessionRecord, bool] | None":
        """The session of that id, for a request of `principal`; None where there is none of his. This replica has it
        from now on. With it, whether the requests `ids` are served here from now on: not one of them is, where one of
        them is being served somewhere."""

    def leave(self, id: str, ids: "Sequence[RequestId]") -> None:
        """The requests `ids` are answered, or given up: their ids are free. Never waits."""

    async def owner(self, id: str, request_id: "RequestId") -> int | None:
        """The replica that serves that request; None where none does."""

    async def update(self, id: str, before: "Snapshot", after: "Snapshot") -> None:
        """What lasts of a session has changed here, from `before` to `after`, which is merged with what changed
        elsewhere: see `merge`. Who has the session and knows something else is told how it is, by its bus."""

    def watch(self, id: str, uri: str, *, is_watched: bool) -> None:
        """This replica tells the client of that resource from now on, or none does. That which did is told, by its
        bus. Never waits."""

    async def adopt(self, id: str) -> Sequence[str]:
        """The resources that the client has subscribed to, and that no replica tells of any more, as it is gone: from
        now on this one does."""

    async def lapse(self, id: str, *, busy: bool) -> bool:
        """This replica was not asked for the session for as long as one may be idle. Whether it ended by that, which
        it does where all that have it said so since somebody asked for it last. Else this one no longer has it,
        unless it is `busy` with it."""

    def release(self, id: str) -> None:
        """This replica no longer has the session, which goes on, for as long as one may be idle where no replica has
        it. Never waits."""

    def delete(self, id: str) -> None:
        """Ends a session. The other replicas that have it are told, by their bus. Never waits."""

    async def settle(self) -> None:
        """Returns when all replicas go by what was said before. Raises Unavailable where that is not known."""


class Bus(Protocol):
    """What one replica hears of the others, in the order in which each of them says it."""

    def receive(self, hand: "Callable[[News], None]") -> None:
        """Has `hand` called with each of the news for this replica, also with those that came before, once each."""

    async def deliver(self, replica: int, news: "News") -> bool:
        """Tells another replica, which gets it unless it is given up before; False where it is gone."""

    def publish(self, run: str, change: Change) -> None:
        """Tells all other replicas that something has changed in the run of that name: that of the principals of a
        name, or "" for all others. Never waits."""

    def hear(self, hand: Callable[[str, Change], None]) -> None:
        """Has `hand` called with the run and the change whenever another replica tells of one."""


class Blobs(Protocol):
    """Data by name, for a time."""

    async def put(self, data: bytes, seconds: float, name: str | None = None) -> str:
        """Keeps `data` for so long, under a `name` or one that can't be guessed, which this gives."""

    async def get(self, name: str) -> bytes | None:
        """What is kept under that name; None where nothing is."""

    async def claim(self, name: str, seconds: float) -> bool:
        """Whether nobody has claimed that name before, which is claimed for so long from now on."""


@record
class ReplayLimits:
    """What is kept for clients that come back."""

    stream_bytes: int = 1_048_576
    """How far the reader of a stream may fall behind."""
    replay_bytes: int = 1_048_576
    """What one stream keeps; an answer is kept whatever its size."""
    replay_events: int = 1_000
    """The same in messages."""
    replay_streams: int = 100
    """How many streams that have ended a session keeps."""
    session_replay_bytes: int = 4 * 1_048_576
    """What all streams of a session keep together."""
    total_replay_bytes: int = 256 * 1_048_576
    """What all sessions keep together."""
    replay_seconds: float = 60.0
    """How long a stream that has ended, or that nobody reads, is kept."""


class EventLog(Protocol):
    """The numbered messages of the streams of all sessions."""

    def session(self, id: str) -> "SessionEvents":
        """The streams of one session, the same for all replicas."""

    def drop(self, id: str) -> None:
        """Forgets a session that has ended, after its streams were closed."""


class SessionEvents(Protocol):
    """The streams of one session: of each POST one, and its own, for what no request asked for."""

    def stream(self, ids: "tuple[RequestId, ...]") -> "EventStream":
        """A new one, for the answers to `ids`. It is this replica's alone until it is shown."""

    def own(self) -> "EventStream":
        """The session's own, to put messages on."""

    async def find(self, name: str | None = None) -> "EventStream | None":
        """A stream that was shown, or the session's own, as it is now: to be read. What a replica owed on it that is
        gone is answered."""

    def taken(self) -> None:
        """A reader has taken what there was for it: what was held back for its sake may go on."""

    def hear_taken(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Has `wake` called when a reader has taken something, until the function that this gives is called."""

    def make_room(self) -> None:
        """Gives up the oldest of what is kept, as long as it is too much. Called after messages were put."""

    def close(self, refusal: "Refusal") -> None:
        """The session has ended: ends all that were shown, those without an answer with `refusal`, and forgets what
        nobody reads."""

    def release(self) -> None:
        """One that got this from the log has no more to do with the session, which goes on."""


class EventReader(Protocol):
    """Who reads a stream, as its log sees it: an HTTP response, or a transport of one's own that can come back. Of
    its methods none waits."""

    def wake(self) -> None:
        """There is something to take, or the end."""

    def pause(self, retry_ms: int) -> None:
        """Reading is to end, and the stream goes on; the client should wait so long before it comes back."""

    def cut(self) -> None:
        """Reading is to end at once: it is too far behind, or somebody else has begun."""


class EventStream(Protocol):
    """The numbered messages of one POST, or of none. Over all replicas at most one reads it, who began last."""

    ids: "tuple[RequestId, ...]"
    """The requests that it answers; none for the session's own."""
    name: str
    """Empty until it is shown: before, nobody can come back for it."""
    answered: bool
    """Whether the last message is the answer."""
    is_over: bool
    """Whether nothing more will be put."""
    is_lost: bool
    """Whether nobody will ever read it."""
    refusal: "Refusal | None"
    """Why there will be no answer, where the session ended before."""
    reader: "EventReader | None"
    """Who reads it here."""

    # Writing, which never waits

    def put(self, message: bytes, *, once: bool = False, everywhere: bool = False) -> None:
        """Adds a message; with `once` not if the same one waits for a reader. With `everywhere` every replica that
        has the session adds it: that of the reader counts, or where there is none the first. Cuts a reader off that
        is too far behind."""

    def crowds(self, message: bytes) -> bool:
        """Whether `message` is too much on top of what its reader, if it has one, has not taken yet."""

    def answer(self, message: bytes) -> None:
        """Adds the last message, whatever waits, and ends."""

    def end(self, refusal: "Refusal | None" = None) -> None:
        """Nothing more will come; `refusal` says why, where an answer is still owed. Without one the requests were
        cancelled, and nobody comes back for it."""

    def pause(self, retry_ms: int) -> None:
        """Has its reader pause, if there is one."""

    def settled(self) -> Awaitable[None] | None:
        """What to await before bytes of what was put leave: other replicas know it then. None: they do."""

    # Reading

    def read(self, reader: EventReader, after: int | None = None) -> None:
        """Has `reader` read what nobody has taken, or everything after message number `after`; the reader before it
        is cut off. What there is to take is there when `settled`; the reader is cut off, and stays, where that is
        not all of it."""

    def take(self) -> "list[ServerSentEvent]":
        """What its reader has not taken yet; it counts as sent from now on."""

    def leave(self, reader: EventReader) -> None:
        """`reader` reads no more. A stream whose client can't come back is lost."""

    def show(self) -> str:
        """Its name, which leaves with its events: from now on any replica finds it, and the client may come back."""

    def position(self, retry_ms: int) -> "ServerSentEvent":
        """An event without data that tells where the client is, and how long to wait before it comes back."""

    def has(self, number: int) -> bool:
        """Whether there has been a message of that number; 0 is the beginning."""

    def follows(self, number: int) -> bool:
        """Whether everything after that message is kept."""

    @property
    def is_read(self) -> bool:
        """Whether somebody reads it."""

    @property
    def is_sent(self) -> bool:
        """Whether there is nothing to take."""

    @property
    def sole_answer(self) -> bytes | None:
        """The answer, where it is all that was ever put and nobody can come back for it."""

    def forget(self) -> None:
        """Gives up everything that it keeps."""


@record
class TaskLimits:
    """Caps for the tasks of one server."""

    total: int = 10_000
    """Tasks that are kept, at work or ended."""
    of_one_client: int = 1_000
    """Those of them that one client has: one principal, or one session or address where nobody is authenticated."""
    result_bytes: int = 64 * 1024 * 1024
    """What all their results take as JSON; one of several clients leaves as much to others as it has. Errors of a
    kilobyte always have room."""
    seconds: float = 3_600.0
    """How long a task is kept from its creation on, and so how long it may work."""


@record
class TaskRecord:
    """A task as its store has it. It is not changed: another one takes its place."""

    id: str
    """Not to be guessed: where nobody is authenticated, who knows it may have the task."""
    form: str
    """By which methods it may be asked for: those of the extension, or those of 2025-11-25."""
    principal: str | None
    """The key of whom it belongs to; None where nobody was authenticated."""
    client: str
    """A name for whoever has begun it, to whose share it counts."""
    created: float
    """Seconds since 1970, as `updated`."""
    updated: float
    seconds: float
    """How long it is kept from its creation on."""
    status: TaskStatus = "working"
    message: str | None = None
    """How far it is, or why it ended so, in words for a person."""
    questions: Mapping[str, Any] = field(default_factory=dict)
    """What it waits for, by key the method and params of a request to the client. A key is never used again."""
    answers: Mapping[str, Any] = field(default_factory=dict)
    """What has come and was not taken yet, by key: `{"result": ...}`, or `{"error": ...}`."""
    outcome: Mapping[str, Any] | None = None
    """What came of it: `{"result": ...}`, or `{"error": ...}`."""
    revision: int = 0
    """How often it has changed."""
    scopes: frozenset[str] = frozenset()
    """What a token needs for the call that it was, and so for all that it tells."""


class TaskStore(Protocol):
    """The tasks of a server, until they expire. One that has expired is not found any more."""

    async def create(self, task: "TaskRecord") -> bool:
        """Keeps a new task. Done before its id is told to anybody; False where there are too many."""

    async def get(self, id: str) -> "TaskRecord | None":
        """The task of that id."""

    async def replace(self, before: "TaskRecord", after: "TaskRecord") -> bool:
        """Puts `after`, of the next revision, in the place of `before`; False where that is not what is kept. Raises
        OverflowError where the results of all tasks would take more than may be kept, but never for an error of at
        most 1,024 bytes."""

    async def forget(self, id: str) -> None:
        """Gives up a task."""

    async def listed(self, principal: str) -> Sequence["TaskRecord"]:
        """The tasks of a principal, the oldest first."""

    def hear(self, id: str, wake: Callable[[], None]) -> Callable[[], None]:
        """Has `wake` called whenever that task was replaced, has expired or was given up, until the function that
        this gives is called. Neither waits nor raises."""
