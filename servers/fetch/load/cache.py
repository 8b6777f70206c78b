"""A private cache of answers in memory, after RFC 9111, for one user.

Why hishel is not used, though its rules work without its transports: it computes the age of an answer from its date
alone (neither from `Age` nor from the time of the request); it has no storage in memory and no bound in bytes, only
SQLite and Redis, and loads msgpack and sqlite3 for them. With GET as the only method, and no answer stored for
others, the rest of the RFC is shorter than an adapter would be.

An answer that names no lifetime is never assumed to be fresh, as the RFC would allow: it is revalidated.
"""

import re
from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple

from servers.fetch.load.exchange import Answer, http_date

STORABLE = frozenset({200, 203, 301, 302, 303, 307, 308})
OVERHEAD = 1_000
"""Approximate bytes of an answer besides its body and headers."""
OF_THE_BODY = frozenset(["content-encoding", "content-length", "content-range", "content-type", "transfer-encoding"])
"""Headers that a 304 does not renew, since they describe a body that it does not have."""

DIRECTIVE = re.compile(r"""([\w!#$%&'*+.^`|~-]+)(?:=(?:"([^"]*)"|([^\s,;"]*)))?""", re.ASCII)


class StoredAnswer(NamedTuple):
    """A stored answer, with its rules for reuse."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    received: int
    varying: tuple[tuple[str, str | None], ...]
    """The request headers that it depends on, as they were sent."""
    confirmed_at: float
    """The time when the site sent or confirmed it, in seconds since 1970."""
    initial_age: float
    """Its age at that time, in seconds."""

    def is_fresh(self, now: float) -> bool:
        """Return True if it may be used without asking the site."""
        age = self.initial_age + max(0.0, now - self.confirmed_at)
        return age < fresh_seconds(self.headers)

    def conditions(self) -> dict[str, str]:
        """Return the headers of a conditional request (RFC 9110, section 13.1); none without a validator.

        A validator beyond ASCII is left out, since its bytes on the wire are unknown by then.
        """
        headers = {
            "if-none-match": self.headers.get("etag", ""),
            "if-modified-since": self.headers.get("last-modified", ""),
        }
        return {name: value for name, value in headers.items() if value and value.isascii()}

    def fits(self, sent: Mapping[str, str]) -> bool:
        """Return True if it answers a request with the headers `sent`."""
        return all(sent.get(name) == value for name, value in self.varying)

    def confirmed(self, answer: Answer, times: tuple[float, float]) -> "StoredAnswer | None":
        """Return this answer with the headers of a 304; None if that is about another version."""
        theirs, mine = answer.headers.get("etag"), self.headers.get("etag")
        if theirs is not None and mine is not None and _opaque(theirs) != _opaque(mine):
            return None
        renewed = {name: value for name, value in _plain(answer).items() if name not in OF_THE_BODY}
        age = _initial_age(renewed, times)
        # The former age no longer applies to the confirmed answer.
        former = {name: value for name, value in self.headers.items() if name != "age"}
        return self._replace(headers={**former, **renewed}, confirmed_at=times[1], initial_age=age)

    def is_storable(self) -> bool:
        """Return True if it may be stored, and storing it may save something."""
        if self.status not in STORABLE or "no-store" in _directives(self.headers):
            return False
        if ("*", None) in self.varying:
            return False
        return bool(self.conditions()) or self.is_fresh(self.confirmed_at)

    def size(self) -> int:
        """Return the number of bytes that it takes."""
        return len(self.body) + sum(len(n) + len(v) for n, v in self.headers.items()) + OVERHEAD


def stored_answer(answer: Answer, sent: Mapping[str, str], times: tuple[float, float]) -> StoredAnswer:
    """Return `answer` in the form to store; `times` are those of its request and of its arrival."""
    headers = _plain(answer)
    names = {name.strip().lower() for name in headers.get("vary", "").split(",")} - {""}
    if headers.get("content-type", "").lower().startswith("text/markdown"):
        # Sites that have Markdown besides HTML don't always declare it, and other requests accept HTML.
        names.add("accept")
    varying = tuple((name, sent.get(name)) for name in sorted(names))
    age = _initial_age(headers, times)
    return StoredAnswer(answer.status, headers, answer.body, answer.received, varying, times[1], age)


class Cache:
    """Answers by URL, of `capacity` bytes in all; the least recently used are dropped first."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._stored: OrderedDict[str, StoredAnswer] = OrderedDict()
        self.size = 0
        """Bytes in use."""

    def find(self, url: str, sent: Mapping[str, str]) -> StoredAnswer | None:
        """Return the stored answer for `url` that fits such a request, fresh or not."""
        stored = self._stored.get(url)
        if stored is None or not stored.fits(sent):
            return None
        self._stored.move_to_end(url)
        return stored

    def put(self, url: str, answer: StoredAnswer) -> None:
        """Store `answer` in place of the earlier one for `url`, if it may be stored and there is room for it."""
        self.drop(url)
        size = answer.size() + len(url)
        if not answer.is_storable() or size > self._capacity:
            return
        self._stored[url] = answer
        self.size += size
        while self.size > self._capacity:
            self.drop(next(iter(self._stored)))

    def drop(self, url: str) -> None:
        """Forget `url`."""
        old = self._stored.pop(url, None)
        if old is not None:
            self.size -= old.size() + len(url)


def _plain(answer: Answer) -> dict[str, str]:
    """Return the headers by name in lower case, without cookies: they are never stored, and may be secret."""
    return {name.lower(): value for name, value in answer.headers.items() if name.lower() != "set-cookie"}


def _directives(headers: Mapping[str, str]) -> dict[str, str]:
    directives: dict[str, str] = {}
    for match in DIRECTIVE.finditer(headers.get("cache-control", "")):
        directives.setdefault(match[1].lower(), match[2] or match[3] or "")
    return directives


def fresh_seconds(headers: Mapping[str, str]) -> float:
    """Return the seconds from its creation during which an answer is fresh: RFC 9111, 4.2.1. An unreadable lifetime
    counts as 0.
    """
    directives = _directives(headers)
    if "no-cache" in directives:
        return 0.0
    if "max-age" in directives:
        return _seconds(directives["max-age"])
    expires, date = http_date(headers.get("expires")), http_date(headers.get("date"))
    return max(0.0, expires - date) if expires is not None and date is not None else 0.0


def _initial_age(headers: Mapping[str, str], times: tuple[float, float]) -> float:
    """Return the age of an answer on arrival: RFC 9111, 4.2.3."""
    requested, received = times
    date = http_date(headers.get("date"))
    apparent = max(0.0, received - date) if date is not None else 0.0
    return max(apparent, _seconds(headers.get("age", "")) + received - requested)


def _seconds(text: str) -> float:
    text = text.strip()
    return float(text[:12]) if text.isascii() and text.isdigit() else 0.0


def _opaque(etag: str) -> str:
    return etag.strip().removeprefix("W/")
