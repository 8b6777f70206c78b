"""JSON-RPC batches, which only version 2025-03-26 has: the messages in an array are answered in one array.

Answers are collected until every request of the batch is answered or cancelled. A batch of notifications gets no
answer at all (JSON-RPC 2.0, section 6). The size of collected answers is limited: one that exceeds the limit is
replaced with an error.
"""

from dataclasses import field

from ...errors import InternalError, InvalidRequest
from ..records import mutable_record
from ..wire.jsonrpc import Batch, Failure, Malformed, Message, Request, RequestId, Response, failure
from ..wire.weight import weigh_result
from .events import Outgoing

MAX_BATCH = 1_000
"""Maximum number of messages in one batch, since each may need an answer."""
MAX_BYTES = 8 * 1_048_576
"""Maximum memory in bytes of results that wait for other answers of their batches. The answer to a batch is encoded
in one piece, which blocks the event loop for some milliseconds."""
_TOO_MUCH = "the call was made, but its result is left out, because the results of your batches take too much memory"


@mutable_record
class _Pending:
    """A batch that has not been answered yet."""

    first: RequestId | None
    """The id of the first request in the batch. HTTP sends the answer as the response to the POST of that request."""
    ids: set[RequestId] = field(default_factory=set)
    """The ids of its calls in progress."""
    answers: list[Response | Failure] = field(default_factory=list)
    size: int = 0
    """The memory in bytes of its results."""


class Batches:
    """One peer's batches that are not answered yet."""

    def __init__(self) -> None:
        self.size = 0
        """The memory in bytes of results that wait for other answers of their batches."""
        self._by_id: dict[RequestId, _Pending] = {}
        self._open: _Pending | None = None

    def open(self, batch: Batch) -> tuple[Message, ...]:
        """Begin to receive a batch. Return its messages, with an error for each that a batch may not contain."""
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
        """Record that the request `id` belongs to the batch being received, and will be answered or cancelled."""
        if self._open is not None:
            self._open.ids.add(id)
            self._by_id[id] = self._open

    def close(self) -> Outgoing | None:
        """End the batch being received. Return its answer if it is already complete."""
        pending, self._open = self._open, None
        return self._complete(pending)

    def is_batched(self, answer: Response | Failure) -> bool:
        """Return True if `answer` belongs to a batch."""
        return self._open is not None or answer.id in self._by_id

    def has(self, id: RequestId) -> bool:
        """Return True if the request `id` arrived in a batch, and has not been answered yet."""
        return id in self._by_id

    def add(self, answer: Response | Failure) -> Outgoing | None:
        """Add `answer` to the answers of its batch. Return the answer to the batch if it is now complete."""
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
        """Remove a cancelled request, which is not answered. Return the answer to its batch if it is now complete."""
        return self._complete(self._pop(id))

    def _pop(self, id: RequestId | None) -> _Pending | None:
        pending = self._by_id.pop(id, None) if id is not None else None
        if pending is not None and id is not None:
            pending.ids.discard(id)
        return pending

    def _complete(self, pending: _Pending | None) -> Outgoing | None:
        # A batch is complete when all its messages were handled, and all its calls have ended.
        if pending is None or pending is self._open or pending.ids:
            return None
        answers, pending.answers = tuple(pending.answers), []
        self.size -= pending.size
        if answers:
            return Outgoing(Batch(answers), pending.first)
        # Every request was cancelled. Nothing is sent, but HTTP has to end the response.
        return None if pending.first is None else Outgoing(None, pending.first)
