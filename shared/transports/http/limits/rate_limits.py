"""What one principal may take of a listener: requests a second, calls at once, sessions, bytes a day.

Whoever has no principal is counted by address. Rates and bytes are counted where all replicas see them, calls and
sessions in each process. What is refused says when to come again; what has begun goes on, whatever it takes.
"""

import math
from collections import Counter
from collections.abc import Mapping
from copy import copy
from functools import lru_cache

from ....contracts import Limiter, Rate
from ....errors import LimitExceeded
from ....protocol.http.rules import Refusal, limit_exceeded
from ....protocol.wire.jsonrpc import Batch, Malformed, Message, Request, failure
from ....stores.memory_limiter import MemoryLimiter
from .endpoint_limits import ClientLimits

_DAY_SECONDS = 86_400
_CALLS_SECONDS = 1.0
_SESSIONS_SECONDS = 60.0
"""When to come again where others have to finish first."""
_TEXTS = {
    "rate": "too many requests",
    "bytes": "the bytes of a day are used up",
    "calls": "too many of your calls are under way; wait for their answers",
    "sessions": "you have too many sessions open; end one",
}


@lru_cache(1_024)
def account_of(client: str) -> str:
    """Whose allowance a `client` takes from, which is an address and a principal: the principal's, wherever it comes
    from, else that of the address."""
    # From the right: a principal may have an @ in its name, an address never.
    return client.rpartition("@")[0] or client


@lru_cache(1_024)
def _bytes_of(client: str) -> str:
    """The name by which the bytes of that account are counted."""
    return f"bytes {account_of(client)}"


class Allowances:
    """The allowances of one server; `of_server` is that of another one of the same listener."""

    def __init__(self, limits: ClientLimits, limiter: Limiter | None = None) -> None:
        self.limits = limits
        self.limiter = MemoryLimiter() if limiter is None else limiter
        self.refused: Counter[str] = Counter()
        """How often this server has refused something, by the limit."""
        self._rate = Rate(limits.per_second, limits.burst)
        self._bytes = Rate(limits.day_bytes / _DAY_SECONDS, limits.day_bytes)
        self._calls: dict[str, int] = {}

    def of_server(self) -> "Allowances":
        """The same, with refusals that are counted apart."""
        other = copy(self)
        other.refused = Counter()
        return other

    async def check(self, client: str, requests: float = 1.0) -> LimitExceeded | None:
        """Takes so many requests of `client`'s; why they may not be served now, where they may not."""
        try:
            wait = await self.limiter.take(account_of(client), self._rate, requests)
            if wait:
                return self.exceeded("rate", wait)
            # Nothing is taken: how many bytes it will be is known when they have gone, and `spend` takes them then.
            wait = await self.limiter.take(_bytes_of(client), self._bytes, 0.0)
        except OSError:
            return None  # the other replicas are out of reach: that is no reason to refuse what this one can do
        return self.exceeded("bytes", wait) if wait else None

    async def check_message(self, client: str, message: Message) -> LimitExceeded | None:
        """Takes the requests in `message` of `client`'s, as `check` does. What is no request, the end of one for
        example, always passes."""
        asked = sum(isinstance(one, Request) for one in _single(message))
        return await self.check(client, asked) if asked else None

    def spend(self, client: str, size: int) -> None:
        """So many bytes of `client`'s have come or gone."""
        self.limiter.spend(_bytes_of(client), self._bytes, size)

    @property
    def under_way(self) -> Mapping[str, int]:
        """How many calls each of those has who have any: principals, and addresses after an `@`."""
        return self._calls

    def begin(self, client: str) -> LimitExceeded | None:
        """A call of `client`'s is to begin; why it may not, where it may not. Else it counts until `end`."""
        account = account_of(client)
        under_way = self._calls.get(account, 0)
        if under_way >= self.limits.calls:
            return self.exceeded("calls", _CALLS_SECONDS)
        self._calls[account] = under_way + 1
        return None

    def end(self, client: str) -> None:
        """A call of `client`'s has ended."""
        account = account_of(client)
        left = self._calls[account] - 1
        if left:
            self._calls[account] = left
        else:
            del self._calls[account]

    def too_many_sessions(self) -> Refusal:
        """Refuses a session."""
        return limit_exceeded(self.exceeded("sessions", _SESSIONS_SECONDS))

    def exceeded(self, limit: str, seconds: float) -> LimitExceeded:
        """Counts a refusal, which may be tried again after so many seconds."""
        self.refused[limit] += 1
        return LimitExceeded(_TEXTS.get(limit, limit), limit, max(1, math.ceil(seconds)))


def refused_message(message: Message, error: LimitExceeded) -> Message:
    """What stands for a message whose requests may not be served now: their answers, and what else is in it."""
    asked = [one for one in _single(message) if isinstance(one, Request)]
    # As if it could not be read: the session answers it in its place, under its id, also within a batch.
    answers = tuple(Malformed(failure(one.id, error), is_call=True) for one in asked)
    others = tuple(one for one in _single(message) if not isinstance(one, Request))
    return Batch((*answers, *others)) if isinstance(message, Batch) else answers[0]


def _single(message: Message) -> tuple[Message, ...]:
    return message.messages if isinstance(message, Batch) else (message,)
