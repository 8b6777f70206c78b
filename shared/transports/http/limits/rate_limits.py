"""The quotas of each principal on a listener: requests per second, simultaneous calls, sessions, bytes per day.

Senders without a principal are counted by address. Requests and bytes are counted over all replicas together, calls
and sessions in each process. A refusal says when to try again. Calls that have begun are never stopped, however many
bytes they send.
"""

import math
from collections import Counter
from collections.abc import Mapping
from copy import copy
from functools import lru_cache

from ....contracts import Limiter, Rate
from ....errors import LimitExceeded
from ....protocol.http.rules import Refusal, limit_exceeded
from ....protocol.wire.jsonrpc import Batch, Malformed, Message, Request, failure, messages_of
from ....stores.memory_limiter import MemoryLimiter
from .endpoint_limits import ClientLimits

_DAY_SECONDS = 86_400
_CALLS_SECONDS, _SESSIONS_SECONDS = 1.0, 60.0
"""The seconds after which a refused client should try again: other calls, or other sessions, must end first."""
_REASONS = {
    "rate": "too many requests",
    "bytes": "the daily byte limit is used up",
    "calls": "too many of your calls are in progress; wait for their answers",
    "sessions": "you have too many sessions open; end one",
}


@lru_cache(1_024)
def account_of(client: str) -> str:
    """Return the account that the quotas of a `client` (see `client_name`) are counted for: the principal, whatever
    its address, or without a principal `@` and the address."""
    # The last @ is the separator: a principal may have an @ in its name, an address never.
    return client.rpartition("@")[0] or client


@lru_cache(1_024)
def _bytes_key(client: str) -> str:
    """Return the key under which the bytes of the client's account are counted."""
    return f"bytes {account_of(client)}"


class ClientQuotas:
    """The quotas of all clients at one server. The servers of a listener have quotas from `for_server`, which share
    their counts."""

    def __init__(self, limits: ClientLimits, limiter: Limiter | None = None) -> None:
        self.limits = limits
        self.limiter = MemoryLimiter() if limiter is None else limiter
        self.refused: Counter[str] = Counter()
        """The number of refusals of this server, by limit."""
        self._rate = Rate(limits.per_second, limits.burst)
        self._bytes = Rate(limits.day_bytes / _DAY_SECONDS, limits.day_bytes)
        self._calls: dict[str, int] = {}

    def for_server(self) -> "ClientQuotas":
        """Return the same quotas with a separate count of refusals."""
        other = copy(self)
        other.refused = Counter()
        return other

    async def check(self, client: str, requests: float = 1.0) -> LimitExceeded | None:
        """Count a number of `requests` of `client`. Returns an error if they may not be served now."""
        try:
            wait = await self.limiter.take(account_of(client), self._rate, requests)
            if wait:
                return self.refuse("rate", wait)
            # A cost of 0 only checks: the number of bytes is known once they are sent, and `spend` then counts them.
            wait = await self.limiter.take(_bytes_key(client), self._bytes, 0.0)
        except OSError:
            return None  # the other replicas can't be reached, but this one can serve the request
        return self.refuse("bytes", wait) if wait else None

    async def check_message(self, client: str, message: Message) -> LimitExceeded | None:
        """Count the requests in `message` of `client`, like `check`. A message without requests, such as a
        cancellation, always passes."""
        requests = sum(isinstance(part, Request) for part in messages_of(message))
        return await self.check(client, requests) if requests else None

    def charge(self, client: str, requests: float) -> None:
        """Count a number of `requests` of `client` that have already been served."""
        self.limiter.spend(account_of(client), self._rate, requests)

    def spend(self, client: str, size: int) -> None:
        """Count `size` bytes that were received from or sent to `client`."""
        self.limiter.spend(_bytes_key(client), self._bytes, size)

    @property
    def pending_calls(self) -> Mapping[str, int]:
        """The number of pending calls by account, see `account_of`."""
        return self._calls

    def begin(self, client: str) -> LimitExceeded | None:
        """Begin a call from `client`, which is counted until `end`. Returns an error if the call may not begin."""
        account = account_of(client)
        pending_calls = self._calls.get(account, 0)
        if pending_calls >= self.limits.calls:
            return self.refuse("calls", _CALLS_SECONDS)
        self._calls[account] = pending_calls + 1
        return None

    def end(self, client: str) -> None:
        """End a call from `client`."""
        account = account_of(client)
        remaining = self._calls[account] - 1
        if remaining:
            self._calls[account] = remaining
        else:
            del self._calls[account]

    def too_many_sessions(self) -> Refusal:
        """Return the refusal of one more session of a client, and count it."""
        return limit_exceeded(self.refuse("sessions", _SESSIONS_SECONDS))

    def refuse(self, limit: str, seconds: float) -> LimitExceeded:
        """Count a refusal by `limit`, and return its error; the client may try again after `seconds`."""
        self.refused[limit] += 1
        return LimitExceeded(_REASONS.get(limit, limit), limit, max(1, math.ceil(seconds)))


def refuse_message(message: Message, error: LimitExceeded) -> Message:
    """Return a replacement for a message whose requests may not be served now: in place of the requests it contains
    the errors that answer them."""
    requests = [part for part in messages_of(message) if isinstance(part, Request)]
    # A session answers a `Malformed` request with the given error and the id of the request, also within a batch.
    answers = tuple(Malformed(failure(part.id, error), is_call=True) for part in requests)
    others = tuple(part for part in messages_of(message) if not isinstance(part, Request))
    return Batch((*answers, *others)) if isinstance(message, Batch) else answers[0]
