"""Answers that are kept, after RFC 9111, for one user: a private cache in memory.

Why not hishel, whose rules can be had without its transports: what it takes for the age of an answer is its date
alone (neither `Age` nor how long the request took); it has no storage in memory and no bound in bytes, only SQLite
and Redis, and loads msgpack and sqlite3 for them. With GET as the only method, and no answer kept for others, what
is left of the RFC is less than what would drive it.

An answer that names no lifetime is never taken to be fresh by a guess, as the RFC would allow: it is revalidated.
"""

import re
from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple

from servers.fetch.load.exchange import Answer, http_date

STORABLE = frozenset({200, 203, 301, 302, 303, 307, 308})
OVERHEAD = 1_000
"""Bytes that an answer takes besides its body and headers, about."""
OF_THE_BODY = frozenset(["content-encoding", "content-length", "content-range", "content-type", "transfer-encoding"])
"""Headers that a 304 does not renew: they tell of a body that it does not bring."""

DIRECTIVE = re.compile(r"""([\w!#$%&'*+.^`|~-]+)(?:=(?:"([^"]*)"|([^\s,;"]*)))?""", re.ASCII)


class Kept(NamedTuple):
    """An answer, with what it says about being used again."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    received: int
    varying: tuple[tuple[str, str | None], ...]
    """The headers of the request that it depends on, as they were sent."""
    confirmed_at: float
    """When the site gave or confirmed it, in seconds since 1970."""
    initial_age: float
    """How old it was then, in seconds."""

    def is_fresh(self, now: float) -> bool:
        """Whether it may be used without asking the site."""
        age = self.initial_age + max(0.0, now - self.confirmed_at)
        return age < fresh_seconds(self.headers)

    def conditions(self) -> dict[str, str]:
        """Return the headers of a conditional request (RFC 9110, section 13.1); none without a validator.

        A validator beyond ASCII is left out: its bytes on the wire are not known any more.
        """
        headers = {
            "if-none-match": self.headers.get("etag", ""),
            "if-modified-since": self.headers.get("last-modified", ""),
        }
        return {name: value for name, value in headers.items() if value and value.isascii()}

    def fits(self, sent: Mapping[str, str]) -> bool:
        """Whether it is an answer to a request with the headers `sent`."""
        return all(sent.get(name) == value for name, value in self.varying)

    def confirmed(self, answer: Answer, times: tuple[float, float]) -> "Kept | None":
        """Itself with the facts of a 304; None where that is about another version."""
        theirs, mine = answer.headers.get("etag"), self.headers.get("etag")
        if theirs is not None and mine is not None and _opaque(theirs) != _opaque(mine):
            return None
        renewed = {name: value for name, value in _plain(answer).items() if name not in OF_THE_BODY}
        age = _initial_age(renewed, times)
        # An age of old is no fact about the answer any more.
        former = {name: value for name, value in self.headers.items() if name != "age"}
        return self._replace(headers={**former, **renewed}, confirmed_at=times[1], initial_age=age)

    def is_storable(self) -> bool:
        """Whether it may be kept, and keeping it may save something."""
        if self.status not in STORABLE or "no-store" in _directives(self.headers):
            return False
        if ("*", None) in self.varying:
            return False
        return bool(self.conditions()) or self.is_fresh(self.confirmed_at)

    def size(self) -> int:
        """Bytes that it takes."""
        return len(self.body) + sum(len(n) + len(v) for n, v in self.headers.items()) + OVERHEAD


def kept(answer: Answer, sent: Mapping[str, str], times: tuple[float, float]) -> Kept:
    """What `answer` is as one that may be kept; `times` are when it was asked for and when it came."""
    headers = _plain(answer)
    names = {name.strip().lower() for name in headers.get("vary", "").split(",")} - {""}
    if headers.get("content-type", "").lower().startswith("text/markdown"):
        # Sites that have it besides HTML don't always say so, and other requests want the HTML.
        names.add("accept")
    varying = tuple((name, sent.get(name)) for name in sorted(names))
    age = _initial_age(headers, times)
    return Kept(answer.status, headers, answer.body, answer.received, varying, times[1], age)


class Cache:
    """Answers by URL, of `capacity` bytes in all; those go first that were not used for longest."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self.size = 0
        """Bytes that are taken."""

    def find(self, url: str, sent: Mapping[str, str]) -> Kept | None:
        """What is kept of `url` and fits such a request, fresh or not."""
        found = self._kept.get(url)
        if found is None or not found.fits(sent):
            return None
        self._kept.move_to_end(url)
        return found

    def put(self, url: str, one: Kept) -> None:
        """Keeps `one` in place of what was kept of `url`, where it may be kept and there is room for it."""
        self.drop(url)
        size = one.size() + len(url)
        if not one.is_storable() or size > self._capacity:
            return
        self._kept[url] = one
        self.size += size
        while self.size > self._capacity:
            self.drop(next(iter(self._kept)))

    def drop(self, url: str) -> None:
        """Forgets `url`."""
        old = self._kept.pop(url, None)
        if old is not None:
            self.size -= old.size() + len(url)


def _plain(answer: Answer) -> dict[str, str]:
    """The headers by name in lower case, without cookies: none are kept, and they may be secret."""
    return {name.lower(): value for name, value in answer.headers.items() if name.lower() != "set-cookie"}


def _directives(headers: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for match in DIRECTIVE.finditer(headers.get("cache-control", "")):
        found.setdefault(match[1].lower(), match[2] or match[3] or "")
    return found


def fresh_seconds(headers: Mapping[str, str]) -> float:
    """Seconds from its making in which an answer is fresh: RFC 9111, 4.2.1. What can't be read is none."""
    directives = _directives(headers)
    if "no-cache" in directives:
        return 0.0
    if "max-age" in directives:
        return _seconds(directives["max-age"])
    expires, date = http_date(headers.get("expires")), http_date(headers.get("date"))
    return max(0.0, expires - date) if expires is not None and date is not None else 0.0


def _initial_age(headers: Mapping[str, str], times: tuple[float, float]) -> float:
    """How old an answer is as it comes: RFC 9111, 4.2.3."""
    asked, came = times
    date = http_date(headers.get("date"))
    apparent = max(0.0, came - date) if date is not None else 0.0
    return max(apparent, _seconds(headers.get("age", "")) + came - asked)


def _seconds(text: str) -> float:
    text = text.strip()
    return float(text[:12]) if text.isascii() and text.isdigit() else 0.0


def _opaque(etag: str) -> str:
    return etag.strip().removeprefix("W/")
