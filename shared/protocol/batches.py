"""Batches of 2025-03-26: messages that came in one array are answered in one array.

Answers are collected until every request of the batch has one or is cancelled. A batch of notifications gets
no answer at all (JSON-RPC 2.0, section 6).
"""

from dataclasses import dataclass, field

from .events import Outgoing
from .jsonrpc import Batch, Failure, Request, RequestId, Response

__all__ = ["MAX_BATCH", "Batches"]

MAX_BATCH = 1_000
"""Messages in one batch; more are refused, for each may cost an answer."""


@dataclass(slots=True)
class _Pending:
    ids: set[RequestId]
    first: RequestId | None
    answers: list[Response | Failure] = field(default_factory=list)


class Batches:
    """The batches of one peer that are not answered yet."""

    def __init__(self) -> None:
        self._by_id: dict[RequestId, _Pending] = {}
        self._opening: _Pending | None = None

    @property
    def is_open(self) -> bool:
        """Whether the messages of a batch are being taken in."""
        return self._opening is not None

    def open(self, batch: Batch) -> None:
        """Starts taking in `batch`."""
        ids = [message.id for message in batch.messages if isinstance(message, Request)]
        self._opening = _Pending(set(ids), ids[0] if ids else None)
        for id_ in ids:
            self._by_id.setdefault(id_, self._opening)

    def close(self) -> Outgoing | None:
        """All messages are taken in; the answer, if it is complete already."""
        pending, self._opening = self._opening, None
        return self._complete(pending)

    def takes(self, answer: Response | Failure) -> bool:
        """Whether `answer` belongs into a batch."""
        return self._opening is not None or answer.id in self._by_id

    def has(self, id: RequestId) -> bool:
        """Whether the request `id` came in a batch and is unanswered."""
        return id in self._by_id

    def add(self, answer: Response | Failure) -> Outgoing | None:
        """Collects `answer`; the whole answer, if this completes it."""
        pending = self._by_id.pop(answer.id, None) if answer.id is not None else None
        if pending is None:
            pending = self._opening
        if pending is None:
            return None
        pending.answers.append(answer)
        if answer.id is not None:
            pending.ids.discard(answer.id)
        return self._complete(pending)

    def drop(self, id: RequestId) -> Outgoing | None:
        """A request was cancelled and gets no answer; the whole answer, if nothing else is missing."""
        pending = self._by_id.pop(id, None)
        if pending is None:
            return None
        pending.ids.discard(id)
        return self._complete(pending)

    def _complete(self, pending: _Pending | None) -> Outgoing | None:
        if pending is None or pending is self._opening or pending.ids:
            return None
        answers, pending.answers = tuple(pending.answers), []
        if answers:
            return Outgoing(Batch(answers), pending.first)
        return None if pending.first is None else Outgoing(None, pending.first)
