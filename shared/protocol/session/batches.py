"""Batches of 2025-03-26: messages in one array are answered in one array.

Answers are collected until every request of the batch has one or is cancelled. A batch of notifications gets no
answer at all (JSON-RPC 2.0, section 6). The size is limited: an answer beyond the limit is replaced by an error.
"""

from dataclasses import dataclass, field

from ...errors import InternalError, InvalidRequest
from ..wire.jsonrpc import Batch, Failure, Malformed, Message, Request, RequestId, Response, failure
from ..wire.weight import weigh_result
from .events import Outgoing

MAX_BATCH = 1_000
"""Maximum number of messages in one batch, since each may cost an answer."""
MAX_BYTES = 8 * 1_048_576
"""Maximum memory in bytes of results that wait for the rest of their batches. They are encoded in one piece, which
takes some milliseconds in the event loop."""
_TOO_MUCH = "the call was made, but its result is left out, because the results of your batches take too much memory"


@dataclass(slots=True, eq=False, repr=False)
class _Pending:
    """A batch with calls in progress."""

    first: RequestId | None
    """The first request of the batch, which determines where HTTP sends the answer."""
    ids: set[RequestId] = field(default_factory=set)
    """The ids of the calls in progress."""
    answers: list[Response | Failure] = field(default_factory=list)
    size: int = 0
    """Size of the answers in bytes."""


class Batches:
    """One peer's batches that are not answered yet."""

    def __init__(self) -> None:
        self.size = 0
        """Size in bytes of results that wait for the rest of their batches."""
        self._by_id: dict[RequestId, _Pending] = {}
        self._open: _Pending | None = None

    def open(self, batch: Batch) -> tuple[Message, ...]:
        """Begin a batch, and return its messages, with refusals instead of messages that are not allowed in a
        batch."""
        ids = [message.id for message in batch.messages if isinstance(message, Request)]
        self._open = _Pending(ids[0] if ids else None)
        refusal = InvalidRequest("initialize may not be part of a batch")
        return tuple(
            Malformed(failure(message.id, refusal))
            if isinstance(message, Request) and message.method == "initialize"
            else message
            for message in batch.messages
        )

    def expect(self, id: RequestId) -> None:
        """Record that the request `id` of the open batch is in progress and will be answered, or cancelled, later."""
        if self._open is not None:
            self._open.ids.add(id)
            self._by_id[id] = self._open

    def close(self) -> Outgoing | None:
        """End the messages of the open batch, and return the answer if it is already complete."""
        pending, self._open = self._open, None
        return self._complete(pending)

    def is_batched(self, answer: Response | Failure) -> bool:
        """Return True if `answer` belongs to a batch."""
        return self._open is not None or answer.id in self._by_id

    def has(self, id: RequestId) -> bool:
        """Return True if the request `id` arrived in a batch and is unanswered."""
        return id in self._by_id

    def add(self, answer: Response | Failure) -> Outgoing | None:
        """Add `answer`, and return the whole answer if this completes it."""
        pending = self._open or self._pop(answer.id)
        if pending is not None:
            size = weigh_result(answer.result) if isinstance(answer, Response) else 0
            if self.size + size > MAX_BYTES:
                answer = failure(answer.id, InternalError(_TOO_MUCH))
            else:
                self.size += size
                pending.size += size
            pending.answers.append(answer)
        return self._complete(pending)

    def drop(self, id: RequestId) -> Outgoing | None:
        """Remove a cancelled request, which gets no answer, and return the whole answer if nothing else is
        missing."""
        return self._complete(self._pop(id))

    def _pop(self, id: RequestId | None) -> _Pending | None:
        pending = self._by_id.pop(id, None) if id is not None else None
        if pending is not None and id is not None:
            pending.ids.discard(id)
        return pending

    def _complete(self, pending: _Pending | None) -> Outgoing | None:
        # While the batch is open, more messages may come; after that, each of its calls has to end first.
        if pending is None or pending is self._open or pending.ids:
            return None
        answers, pending.answers = tuple(pending.answers), []
        self.size -= pending.size
        if answers:
            return Outgoing(Batch(answers), pending.first)
        # Every request was cancelled. Nothing is sent, but HTTP must be notified that nothing will come.
        return None if pending.first is None else Outgoing(None, pending.first)
