"""Issuers of accepted tokens: the metadata and the keys of an authorization server, fetched when needed.

A token contains the id of the key that has signed it. If the id is unknown, the issuer may have a new key, so the
keys are fetched again. But anyone can send a token with an invented id. So this happens at most every half minute,
and with one request for all waiting callers. While the issuer can't be reached, its last keys stay valid for a day.
"""

import logging
import math
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio
from joserfc.jwk import Key

from ..errors import AuthError
from ..protocol.records import record
from ..text import escape
from .addresses import ForbiddenAddress, parse_allowed_url
from .jose import public_key
from .metadata import IssuerMetadata, MetadataError, issuer_metadata_urls, read_issuer_metadata
from .web import Unreachable, Web, WebError

MAX_KEYS = 100
"""Maximum number of keys of an issuer."""
REFETCH_SECONDS = 30.0
"""Minimum number of seconds between two requests for the keys because of an unknown key id."""
RETRY_SECONDS = 5.0
"""Seconds after a failed request before the next one is sent to the issuer."""
STALE_SECONDS = 24 * 3600.0
"""Seconds for which keys stay valid while the issuer can't be reached."""
MAX_TRIED_KEYS = 4
"""Maximum number of keys that are tried for a token without a key id."""
MAX_WAITING = 256
"""Maximum number of tasks that wait for an answer of one issuer; further ones fail."""
_FRESH_SECONDS = 600.0
_MIN_FRESH, _MAX_FRESH = 60.0, 24 * 3600.0
"""How long keys stay fresh, in seconds: the default if the issuer does not specify a time, and the minimum and
maximum for a time that it does specify."""

_KEY_TYPES = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
"""The type of key (`kty`) by the first two letters of the algorithm."""

log = logging.getLogger("shared.auth.issuers")


async def find_metadata(web: Web, issuer: str, referrer: str | None = None) -> IssuerMetadata:
    """Return the metadata of `issuer`, from the first of its well-known URLs that has a document. `referrer` is the
    URL of the document that names the issuer; None if the operator or the user does. Raises AuthError."""
    metadata = await first_metadata(web, issuer_metadata_urls(issuer), issuer, referrer)
    if metadata is None:
        raise MetadataError(f"the issuer {escape(issuer)[:200]} returned no metadata at its well-known URLs")
    return metadata


async def first_metadata(web: Web, urls: Sequence[str], issuer: str, referrer: str | None) -> IssuerMetadata | None:
    """Return the first document at one of `urls` that is the metadata of `issuer`; None if there is no document at
    any of them. Raises AuthError if a request fails, or if all documents belong to other issuers."""
    mismatch: MetadataError | None = None
    for url in urls:
        answer = await web.get_json(url, referrer=referrer)
        if answer.status != 200 or not isinstance(answer.document, dict):
            continue
        try:
            return read_issuer_metadata(answer.document, issuer)
        except MetadataError as error:
            mismatch = error
    if mismatch is not None:
        raise mismatch
    return None


@record
class _NamedKey:
    kid: Any
    algorithm: Any
    key: Key


class Issuer:
    """An authorization server whose tokens are accepted."""

    def __init__(self, url: str, web: Web, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises `ForbiddenAddress` if `url` is not a valid issuer (RFC 8414, section 2)."""
        if parse_allowed_url(url).query:
            raise ForbiddenAddress("the URL of an issuer must not have a query")
        self.url = url
        self._web = web
        self._clock = clock
        self._metadata: IssuerMetadata | None = None
        self._keys: Sequence[_NamedKey] | None = None
        self._fetched_at = self._fresh_until = self._tried_at = -math.inf
        self._attempts = 0
        self._fault: AuthError | None = None
        self._lock = anyio.Lock()

    async def keys(self, kid: str | None, algorithm: str) -> Sequence[Key]:
        """Return the keys that may have signed a token with this algorithm and key id; `kid` is None if the token has
        none. Raises AuthError if the keys can't be fetched."""
        matching = self._find_keys(kid, algorithm)
        now, is_fetching = self._clock(), self._lock.locked()
        # While another task fetches the keys again, use the old ones, which are most likely unchanged. A key that is
        # not among them is awaited.
        if matching and (now < self._fresh_until or is_fetching):
            return matching
        # Anyone can send tokens with invented key ids, which must not cause a request to the issuer each time.
        has_tried = now < min(self._fresh_until, self._tried_at + REFETCH_SECONDS)
        if self._keys is not None and has_tried and not is_fetching:
            return matching
        await self._refresh(self._attempts)
        return self._find_keys(kid, algorithm)

    async def load_keys(self) -> None:
        """Fetch the keys, unless they were fetched before. Raises AuthError."""
        if self._keys is None:
            await self._refresh(self._attempts)

    async def metadata(self) -> IssuerMetadata:
        """Return the metadata of the issuer. Raises AuthError."""
        if self._metadata is not None:
            return self._metadata
        self._check_waiting()
        async with self._lock:
            if self._metadata is None:
                await self._try_load(self._load_metadata)
            if self._metadata is None:
                raise self._fault or Unreachable(f"the issuer {self.url} can't be reached")
            return self._metadata

    async def _refresh(self, attempt: int) -> None:
        self._check_waiting()
        async with self._lock:
            # If the number has changed, another task has fetched the keys, or failed to, while this one waited.
            if self._attempts == attempt:
                await self._try_load(self._load_keys)
            if self._keys is None:
                raise self._fault or Unreachable(f"the issuer {self.url} can't be reached")

    def _check_waiting(self) -> None:
        if self._lock.statistics().tasks_waiting >= MAX_WAITING:
            raise Unreachable(f"too many requests are waiting for the issuer {self.url}")

    async def _try_load(self, load: Callable[[], Awaitable[None]]) -> None:
        """Call `load`, and store its error. Do nothing for `RETRY_SECONDS` after an error."""
        now = self._clock()
        if self._fault is not None and now < self._tried_at + RETRY_SECONDS:
            return
        try:
            # Shielded, since other tasks wait for the result, and an attempt counts only once it has ended.
            with anyio.CancelScope(shield=True):
                await load()
        except AuthError as error:
            if str(error) != str(self._fault):  # an outage is logged once
                log.warning("the issuer %s did not provide its keys: %s", self.url, error)
            # The URL of the keys in the metadata may be outdated, so fetch that again too.
            self._fault, self._metadata = error, None
            self._fresh_until = now + REFETCH_SECONDS
            # An issuer that is down for an hour must not lock all users out. After a day without an answer, the keys
            # may have been revoked.
            if now - self._fetched_at > STALE_SECONDS:
                self._keys = None
        else:
            self._fault = None
        self._attempts += 1
        self._tried_at = now

    async def _load_metadata(self) -> None:
        if self._metadata is None:
            metadata = await find_metadata(self._web, self.url)
            if metadata.issuer != self.url:  # tokens are compared with the URL character by character
                raise MetadataError(f"its metadata names it {escape(metadata.issuer)}: set exactly that URL")
            self._metadata = metadata

    async def _load_keys(self) -> None:
        await self._load_metadata()
        url = None if self._metadata is None else self._metadata.jwks_uri
        if url is None:
            raise MetadataError("its metadata has no jwks_uri")
        answer = await self._web.get_json(url, referrer=self.url)
        if answer.status != 200:
            raise WebError(f"the request for its keys returned HTTP {answer.status}")
        listed = answer.document.get("keys") if isinstance(answer.document, dict) else None
        if not isinstance(listed, list):
            raise MetadataError("its keys are not a JWK Set")
        if len(listed) > MAX_KEYS:
            raise MetadataError(f"it has more than {MAX_KEYS} keys")
        read = [(entry, public_key(entry)) for entry in listed]
        self._keys = [_NamedKey(entry.get("kid"), entry.get("alg"), key) for entry, key in read if key is not None]
        self._fetched_at = self._clock()
        # The issuer may specify for how many seconds the keys are fresh (RFC 9111, section 5.2.2.1).
        match = re.search(r"(?:^|[,\s])max-age=(\d{1,9})", answer.headers.get("cache-control", "").lower(), re.ASCII)
        self._fresh_until = self._fetched_at + (
            _FRESH_SECONDS if match is None else min(max(float(match[1]), _MIN_FRESH), _MAX_FRESH)
        )

    def _find_keys(self, kid: str | None, algorithm: str) -> Sequence[Key]:
        candidates = [entry for entry in self._keys or () if entry.algorithm in (None, algorithm)]
        if kid is not None:
            return [entry.key for entry in candidates if entry.kid == kid]
        # A token without a key id is tried with all keys of its type, unless there are too many.
        usable = [entry.key for entry in candidates if entry.key.key_type == _KEY_TYPES.get(algorithm[:2])]
        return usable if len(usable) <= MAX_TRIED_KEYS else ()
