"""What servers have answered and may be used again (2026-07-28, Caching), bounded in bytes.

    asking(question) ──▶ Pending ──▶ keep(result) ──▶ find(question) ──▶ Kept
                            │                             │
                  changed() makes it stale      changed() ends its freshness

A result is fresh for its `ttlMs`, or until a notification says otherwise. One that is no longer fresh is kept where
it has an etag, so that the server need not send it again. What the server calls "public" is found by every client
that has this cache and asks the same server, anything else by the client alone that it was sent to.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from pydantic_core import PydanticSerializationError, from_json, to_json

from ..protocol.types.resources import ETAG

CACHE_BYTES = 8 * 1024 * 1024
LONGEST_SECONDS = 86_400
"""No promise is believed for longer than a day: a server that forgets to tell of a change is asked again."""
ENTRY_BYTES = 512
"""What an entry takes besides its data, about."""
_ETAG_LENGTH = 256
"""Characters of an etag that is sent back; a longer one is no use."""


@dataclass(frozen=True, slots=True)
class Question:
    """What was asked: the `cursor` of a list or the `uri` of a read, of which server and by whom."""

    server: Hashable
    owner: Hashable
    """The client that asks; None for what anyone may be told."""
    method: str
    of: str | None

    def of_anyone(self) -> "Question":
        """The same, for what anyone may be told."""
        return Question(self.server, None, self.method, self.of)


@dataclass(frozen=True, slots=True)
class Kept:
    """A result that was kept: as bytes, so that nobody changes it and its size is known."""

    data: bytes
    fresh_until: float
    etag: str | None
    asked: int = 0
    """Characters of what it is kept under, which the server may have made."""

    @property
    def size(self) -> int:
        """Bytes, about."""
        return ENTRY_BYTES + self.asked + len(self.data)

    def result(self) -> dict[str, Any]:
        """The result, a new one each time."""
        result: dict[str, Any] = from_json(self.data)
        return result


class Pending:
    """A question whose answer is under way."""

    def __init__(self, question: Question, keep: Callable[[Question, dict[str, Any]], None]) -> None:
        self.question = question
        self.is_stale = False
        """Whether something changed since it was asked: the answer may be of before or after that."""
        self._keep = keep

    def keep(self, result: dict[str, Any]) -> None:
        """Keeps the result, where it may be used again."""
        if not self.is_stale:
            self._keep(self.question, result)


class ResponseCache:
    """Results by question, in `max_bytes` at most; who was not asked for longest goes first. It may be shared by
    clients of one event loop. `clock` gives seconds."""

    def __init__(self, max_bytes: int = CACHE_BYTES, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.max_bytes = max_bytes
        self.size = 0
        """Bytes that are kept now."""
        self._clock = clock
        self._kept: OrderedDict[Question, Kept] = OrderedDict()
        self._pending: set[Pending] = set()

    def find(self, question: Question) -> Kept | None:
        """What is kept, fresh or not: the client's own, or else what anyone may be told."""
        found = question if question in self._kept else question.of_anyone()
        if found not in self._kept:
            return None
        self._kept.move_to_end(found)
        return self._kept[found]

    def is_fresh(self, kept: Kept) -> bool:
        """Whether it may be used without asking the server."""
        return self._clock() < kept.fresh_until

    @contextmanager
    def asking(self, question: Question) -> Iterator[Pending]:
        """Watches for changes while the question is under way."""
        pending = Pending(question, self._keep)
        self._pending.add(pending)
        try:
            yield pending
        finally:
            self._pending.discard(pending)

    def changed(self, concerns: Callable[[Question], bool]) -> None:
        """Ends the freshness of what `concerns` says, also of answers that are still under way."""
        for pending in self._pending:
            pending.is_stale = pending.is_stale or concerns(pending.question)
        for question in [one for one in self._kept if concerns(one)]:
            kept = self._kept[question]
            if kept.etag is None:
                self._drop(question)
            else:
                self._kept[question] = replace(kept, fresh_until=float("-inf"))

    def forget(self, concerns: Callable[[Question], bool]) -> None:
        """Keeps nothing of what `concerns` says any longer."""
        self.changed(concerns)
        for question in [one for one in self._kept if concerns(one)]:
            self._drop(question)

    def _keep(self, question: Question, result: dict[str, Any]) -> None:
        anyone = question.of_anyone()
        told = anyone if result.get("cacheScope") == "public" else question
        self._drop(question)
        self._drop(anyone)
        ttl, meta = result.get("ttlMs"), result.get("_meta")
        seconds = min(max(ttl, 0), LONGEST_SECONDS * 1000) / 1000 if type(ttl) is int else 0.0
        etag = meta.get(ETAG) if isinstance(meta, dict) else None
        if not isinstance(etag, str) or len(etag) > _ETAG_LENGTH:
            etag = None
        is_complete = result.get("resultType", "complete") == "complete"
        if not is_complete or (seconds <= 0 and etag is None) or _least_size(result) > self.max_bytes:
            return
        try:
            kept = Kept(
                to_json(result, inf_nan_mode="constants"), self._clock() + seconds, etag, len(question.of or "")
            )
        except PydanticSerializationError:  # it holds half a surrogate pair, and would come back as something else
            return
        if kept.size <= self.max_bytes:
            self._kept[told] = kept
            self.size += kept.size
        while self.size > self.max_bytes:
            self._drop(next(iter(self._kept)))

    def _drop(self, question: Question) -> None:
        kept = self._kept.pop(question, None)
        self.size -= 0 if kept is None else kept.size


def _least_size(result: dict[str, Any]) -> int:
    """Of a read, the bytes that it has at least: what does not fit is not written for nothing."""
    contents = result.get("contents")
    blocks = [one for one in contents if isinstance(one, dict)] if isinstance(contents, list) else []
    return sum(len(text) for one in blocks for text in (one.get("text"), one.get("blob")) if isinstance(text, str))
