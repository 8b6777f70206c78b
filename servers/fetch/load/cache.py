"""A private in-memory cache of responses for one user, as RFC 9111 defines it.

hishel is not used, although its rules work without its transports. It computes the age of a response from its date
alone, ignoring `Age` and the time of the request. It stores responses only in SQLite or Redis, for which it imports
msgpack and sqlite3, and has no limit in bytes. Since GET is the only method here, and no responses are stored for
other users, the remaining rules take fewer lines than an adapter would.

A response without a lifetime is always revalidated. It is never assumed to be fresh, though the RFC allows it.
"""

import re
from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple

from .exchange import Answer, http_date

STORABLE = frozenset({200, 203, 301, 302, 303, 307, 308})
OVERHEAD_BYTES = 1_000
"""Approximate size in bytes of a response without its body and headers."""
BODY_HEADERS = frozenset(["content-encoding", "content-length", "content-range", "content-type", "transfer-encoding"])
"""Headers that a 304 response does not update, since they describe a body, and a 304 has none."""

DIRECTIVE = re.compile(r"""([\w!#$%&'*+.^`|~-]+)(?:=(?:"([^"]*)"|([^\s,;"]*)))?""", re.ASCII)


class StoredAnswer(NamedTuple):
    """A stored response with its rules for reuse."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    received: int
    """Size of the body in bytes as it was received, before decompression."""
    varying: tuple[tuple[str, str | None], ...]
    """The request headers that the response depends on, as they were sent."""
    confirmed_at: float
    """The time at which the site sent or confirmed the response, in seconds since 1970."""
    initial_age: float
    """Its age at that time, in seconds."""
    is_cut: bool = False
    """True if the end of the body is missing, so that the response must not be stored."""

    def is_fresh(self, now: float) -> bool:
        """Return True if the response may be used without a request to the site."""
        age = self.initial_age + max(0.0, now - self.confirmed_at)
        return age < fresh_seconds(self.headers)

    def conditions(self) -> dict[str, str]:
        """Return the headers of a conditional request (RFC 9110, section 13.1); none without a validator."""
        headers = {
            "if-none-match": self.headers.get("etag", ""),
            "if-modified-since": self.headers.get("last-modified", ""),
        }
        # A non-ASCII validator can't be sent back, since its original bytes are no longer known.
        return {name: value for name, value in headers.items() if value and value.isascii()}

    def matches(self, sent: Mapping[str, str]) -> bool:
        """Return True if the response matches a request with the headers `sent`."""
        return all(sent.get(name) == value for name, value in self.varying)

    def confirm(self, answer: Answer, times: tuple[float, float]) -> "StoredAnswer | None":
        """Return this response with the headers of a 304 response added; None if the 304 is for another version.
        `times` is as in `make_stored_answer`."""
        new_etag, old_etag = answer.headers.get("etag"), self.headers.get("etag")
        if new_etag is not None and old_etag is not None and _strip_weak_mark(new_etag) != _strip_weak_mark(old_etag):
            return None
        new_headers = {name: value for name, value in _copy_headers(answer).items() if name not in BODY_HEADERS}
        age = _compute_initial_age(new_headers, times)
        # The `Age` header of the earlier response no longer applies.
        old_headers = {name: value for name, value in self.headers.items() if name != "age"}
        return self._replace(headers={**old_headers, **new_headers}, confirmed_at=times[1], initial_age=age)

    def is_storable(self) -> bool:
        """Return True if it may be stored and could save a request or a download."""
        if self.is_cut or self.status not in STORABLE or "no-store" in _parse_directives(self.headers):
            return False
        if ("*", None) in self.varying:
            return False
        return bool(self.conditions()) or self.is_fresh(self.confirmed_at)

    def size(self) -> int:
        """Return the size of the response in bytes."""
        return len(self.body) + sum(len(n) + len(v) for n, v in self.headers.items()) + OVERHEAD_BYTES


def make_stored_answer(answer: Answer, sent: Mapping[str, str], times: tuple[float, float]) -> StoredAnswer:
    """Return `answer` in stored form. `times` are the times of the request and of the arrival, in seconds since
    1970."""
    headers = _copy_headers(answer)
    names = {name.strip().lower() for name in headers.get("vary", "").split(",")} - {""}
    if headers.get("content-type", "").lower().startswith("text/markdown"):
        # Sites that offer both Markdown and HTML don't always say so in `Vary`, and other requests ask for HTML.
        names.add("accept")
    varying = tuple((name, sent.get(name)) for name in sorted(names))
    age = _compute_initial_age(headers, times)
    return StoredAnswer(answer.status, headers, answer.body, answer.received, varying, times[1], age, answer.is_cut)


class Cache:
    """Responses by URL, up to `capacity` bytes in total; the least recently used are dropped first."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._stored: OrderedDict[str, StoredAnswer] = OrderedDict()
        self.size = 0
        """Number of bytes in use."""

    def find(self, url: str, sent: Mapping[str, str]) -> StoredAnswer | None:
        """Return the stored response for `url` that matches a request with these headers, fresh or not."""
        stored = self._stored.get(url)
        if stored is None or not stored.matches(sent):
            return None
        self._stored.move_to_end(url)
        return stored

    def put(self, url: str, answer: StoredAnswer) -> None:
        """Replace the stored response for `url` with `answer`, if it may be stored and there is space for it."""
        self.drop(url)
        size = answer.size() + len(url)
        if not answer.is_storable() or size > self._capacity:
            return
        self._stored[url] = answer
        self.size += size
        while self.size > self._capacity:
            self.drop(next(iter(self._stored)))

    def drop(self, url: str) -> None:
        """Remove the stored response for `url`."""
        old = self._stored.pop(url, None)
        if old is not None:
            self.size -= old.size() + len(url)


def _copy_headers(answer: Answer) -> dict[str, str]:
    """Return the headers by lowercase name, without cookies, which are never stored and may be secret."""
    return {name.lower(): value for name, value in answer.headers.items() if name.lower() != "set-cookie"}


def _parse_directives(headers: Mapping[str, str]) -> dict[str, str]:
    directives: dict[str, str] = {}
    for match in DIRECTIVE.finditer(headers.get("cache-control", "")):
        directives.setdefault(match[1].lower(), match[2] or match[3] or "")
    return directives


def fresh_seconds(headers: Mapping[str, str]) -> float:
    """Return how long a response is fresh, in seconds from its creation (RFC 9111, 4.2.1). An invalid one is 0."""
    directives = _parse_directives(headers)
    if "no-cache" in directives:
        return 0.0
    if "max-age" in directives:
        return _parse_seconds(directives["max-age"])
    expires, date = http_date(headers.get("expires")), http_date(headers.get("date"))
    return max(0.0, expires - date) if expires is not None and date is not None else 0.0


def _compute_initial_age(headers: Mapping[str, str], times: tuple[float, float]) -> float:
    """Return the age of a response on arrival (RFC 9111, 4.2.3)."""
    requested, received = times
    date = http_date(headers.get("date"))
    apparent = max(0.0, received - date) if date is not None else 0.0
    return max(apparent, _parse_seconds(headers.get("age", "")) + received - requested)


def _parse_seconds(text: str) -> float:
    text = text.strip()
    return float(text[:12]) if text.isascii() and text.isdigit() else 0.0


def _strip_weak_mark(etag: str) -> str:
    return etag.strip().removeprefix("W/")
