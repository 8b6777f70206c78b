"""Metrics of one server for operators: the numbers of requests and errors, and durations, by method and tool.

A request is counted when it arrives, and its duration when the answer is sent, by the connection on which it arrives.
Clients can't create labels: methods and tools that the server does not have are counted together, as "other". A
server that forwards the tools of other servers has those that it has listed.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from time import perf_counter
from typing import Any, Literal, NamedTuple

from ..protocol.session.events import Outgoing
from ..protocol.types.tools import named_tools
from ..protocol.wire.jsonrpc import Batch, Failure, Message, Request, RequestId, Response
from ..server.run import Run

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""The upper bounds, in seconds, of the buckets in the histogram of latencies. One more bucket has no bound."""
OTHER = "other"
"""The label of all methods or tools that have no label of their own."""
MAX_LISTED_TOOLS = 1_000
"""Maximum number of listed tools, of servers behind this one, that have a label of their own."""

ErrorOrigin = Literal["tool", "client", "server"]
"""Where an error comes from: the tool has failed, the client's request was wrong, or the server has failed."""

_CALL, _LIST = "tools/call", "tools/list"
_INTERNAL = -32603


class Labels(NamedTuple):
    """The labels of a series of requests, besides the server."""

    method: str
    tool: str = ""
    """The tool of `tools/call`; empty for any other method."""


class Series:
    """The counts of the requests of one method, or of the calls of one tool."""

    __slots__ = ("buckets", "errors", "labels", "requests", "seconds")

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        self.requests = 0
        self.errors: Counter[ErrorOrigin] = Counter()
        self.buckets = [0] * (len(BUCKETS) + 1)
        """The number of answers in each bucket: those that took at most its bound, and longer than the previous
        bound."""
        self.seconds = 0.0
        """The total duration of all answered requests."""

    def add(self, other: "Series") -> None:
        """Add the counts of another series."""
        self.requests += other.requests
        self.errors.update(other.errors)
        self.buckets = list(map(sum, zip(self.buckets, other.buckets, strict=True)))
        self.seconds += other.seconds

    def count_answer(self, answer: Response | Failure, seconds: float) -> None:
        """Count the answer to one of the requests."""
        self.buckets[bisect_left(BUCKETS, seconds)] += 1
        self.seconds += seconds
        if isinstance(answer, Failure):
            self.errors["server" if answer.code == _INTERNAL else "client"] += 1
        elif answer.result.get("isError"):
            self.errors["tool"] += 1


class Metrics:
    """The counts of one server. It watches the replica, in order to count how often that is lost."""

    def __init__(self) -> None:
        self._running: Run[Any] | None = None
        self._methods: dict[str, Series] = {}
        self._tools: dict[str, Series] = {}
        self._listed: set[str] = set()
        self.on_answered: Callable[[Labels, float], None] | None = None
        """Called for each answer, with its labels and the duration in seconds."""
        self.losses: int | None = None
        """How often this replica was lost; None if the server has never been a replica."""

    def __iter__(self) -> Iterator[tuple[Labels, Series]]:
        for all_series in (self._methods, self._tools):
            for _, series in sorted(all_series.items()):
                yield series.labels, series

    def attach(self, run: Run[Any]) -> None:
        """Count the requests to `run` from now on, which may be a new run of the same server."""
        self._running = run
        run.hooks.meter = self.meter
        if run.replication.replica is not None:
            self.losses = self.losses or 0
            run.replication.replica.watch(self)

    def meter(self) -> "Meter":
        """Return a meter for one connection."""
        return Meter(self)

    def series(self, request: Request) -> Series:
        """Return the series of `request`."""
        if request.method == _CALL:
            name = request.params.get("name")
            tool = name if isinstance(name, str) else OTHER
            if (series := self._tools.get(tool)) is not None:
                return series
            # An unknown name gets no series of its own, since clients could create any number of them.
            is_known = tool in self._listed or (self._running is not None and tool in self._running.features.tools)
            return self._get_series(self._tools, tool if is_known else OTHER, is_call=True)
        method = request.method
        if (series := self._methods.get(method)) is not None:
            return series
        assert self._running is not None  # only a run creates meters
        is_known = any(name == method for name, _ in self._running.method_table)
        return self._get_series(self._methods, method if is_known else OTHER)

    def learn_tools(self, series: Series, answer: Response) -> None:
        """If `series` belongs to `tools/list`, store the tools in `answer`: their calls are counted by name."""
        for name, _ in named_tools(answer.result) if series is self._methods.get(_LIST) else ():
            if len(self._listed) < MAX_LISTED_TOOLS:
                self._listed.add(name)

    # As a watcher of the replica

    def on_lost(self) -> None:
        """Count that this replica was lost."""
        self.losses = (self.losses or 0) + 1

    def on_return(self) -> None:
        """Do nothing: the loss was counted before."""

    def on_departure(self) -> None:
        """Do nothing: another replica counts its loss itself."""

    def _get_series(self, all_series: dict[str, Series], label: str, *, is_call: bool = False) -> Series:
        if label not in all_series:
            all_series[label] = Series(Labels(_CALL, label) if is_call else Labels(label))
        return all_series[label]


class Figures(NamedTuple):
    """All values of one server at one moment."""

    server: str
    metrics: Iterable[tuple[Labels, Series]]
    up: bool
    """True if the server accepts requests, and any server behind it can be reached."""
    sessions: int
    streams: int
    subscriptions: int
    refused: Mapping[int, int]
    """HTTP requests that were refused before the protocol handled them, by status."""
    unwritten: int | None = None
    """Lines of the audit log that were not written; None without a log."""
    limited: Mapping[str, int] = {}
    """Requests, calls and sessions that were refused because a client had reached a limit, by limit."""
    store_up: bool | None = None
    """True if the store of the replicas can be reached; None without a store."""
    store_lost: int | None = None
    """How often this replica has lost its lease; None without a store."""
    path: str = ""
    """The server's path on its listener; empty if there is none."""
    version: str = ""
    """The server's own version, if known."""
    state: str = "ready"
    """The value of the server's `Phase`."""


class Meter:
    """Counts the messages on one connection."""

    __slots__ = ("_in_progress", "_metrics")

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        # None while no request is in progress, since a dict keeps its memory when it is emptied.
        self._in_progress: dict[RequestId, tuple[Series, float]] | None = None

    def on_received(self, message: Message) -> None:
        """Count `message` if it is a request; of a batch, count each request."""
        if isinstance(message, Request):
            series = self._metrics.series(message)
            series.requests += 1
            if self._in_progress is None:
                self._in_progress = {}
            self._in_progress[message.id] = series, perf_counter()
        elif isinstance(message, Batch):
            for item in message.messages:
                self.on_received(item)

    def on_sent(self, outgoing: Sequence[Outgoing]) -> None:
        """Record the duration of each request that is answered, and drop those that end without an answer."""
        for item in outgoing:
            if item.message is None and item.retry_ms is None and item.related_request_id is not None:
                self._pop_request(item.related_request_id)
            elif item.message is not None:
                self._record_answers(item.message)

    def _record_answers(self, message: Message) -> None:
        # Nearly every message is an answer; a union of classes would be created for each.
        if isinstance(message, (Response, Failure)):
            entry = None if message.id is None else self._pop_request(message.id)
            if entry is not None:
                series, started = entry
                seconds = perf_counter() - started
                series.count_answer(message, seconds)
                if self._metrics.on_answered is not None:
                    self._metrics.on_answered(series.labels, seconds)
                if isinstance(message, Response):
                    self._metrics.learn_tools(series, message)
        elif isinstance(message, Batch):
            for item in message.messages:
                self._record_answers(item)

    def _pop_request(self, id: RequestId) -> tuple[Series, float] | None:
        if self._in_progress is None:
            return None
        entry = self._in_progress.pop(id, None)
        self._in_progress = self._in_progress or None
        return entry
