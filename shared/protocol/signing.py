"""Signed text that clients must send back unchanged: `requestState`, and the cursors of `pagination.py`.

A signed text is `payload.tag`, both in base64url. The payload is JSON, and the tag an HMAC-SHA256 of the purpose and
the payload. A client can read the payload, but only the owner of the key can change it, or use it for another purpose
(2026-07-28, multi-round-trip requests, Security).
"""

import base64
import hashlib
import hmac
from functools import cached_property
from typing import Any

from pydantic_core import from_json, to_json

from ..errors import InvalidParams

_TAG_BYTES = 16


class Signer:
    """Signs texts with one secret key, and verifies them."""

    def __init__(self, key: bytes) -> None:
        self._secret = key

    def sign(self, purpose: str, value: Any) -> str:
        """Return `value`, which must be JSON-serializable, as signed text."""
        payload = base64.urlsafe_b64encode(to_json(value)).rstrip(b"=")
        return f"{payload.decode()}.{self._tag(purpose, payload)}"

    def verify(self, purpose: str, text: str) -> Any:
        """Return the value in `text`. Raises InvalidParams if `sign` did not produce `text` for this purpose."""
        # The text may contain anything that a client sends, even a lone surrogate.
        payload, _, tag = text.encode("utf-8", "replace").partition(b".")
        # The tag is compared in constant time, before any part of the payload is read.
        if not hmac.compare_digest(self._tag(purpose, payload).encode(), tag):
            raise InvalidParams(
                f"this {purpose.partition(':')[0]} was not issued by this server, or has been changed"
            )
        # The decoder ignores padding that is not needed.
        return from_json(base64.urlsafe_b64decode(payload + b"=="))

    @cached_property
    def _key(self) -> bytes:
        # Derived at first use, since most peers never receive signed text.
        return hashlib.sha256(self._secret).digest()

    def _tag(self, purpose: str, payload: bytes) -> str:
        # A digest of the purpose has a fixed length, so no part of the purpose can be mistaken for the payload.
        purpose_digest = hashlib.sha256(purpose.encode()).digest()
        tag = hmac.digest(self._key, purpose_digest + payload, "sha256")[:_TAG_BYTES]
        return base64.urlsafe_b64encode(tag).rstrip(b"=").decode()


def digest(value: Any) -> str:
    """Return a short fingerprint of a JSON-serializable value; the order of keys is ignored."""
    return hashlib.sha256(to_json(_sort_keys(value))).hexdigest()[:32]


def _sort_keys(value: Any) -> Any:
    match value:
        case dict():
            return {key: _sort_keys(value[key]) for key in sorted(value)}
        case list():
            return [_sort_keys(item) for item in value]
        case _:
            return value
