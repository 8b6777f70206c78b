"""Protects proofs of possession against replay, by the proofs that were seen and by nonces of our own."""

import hmac
import secrets
from base64 import urlsafe_b64encode
from collections import Counter
from dataclasses import dataclass, field
from hashlib import sha256

from .dpop import WINDOW_SECONDS, Proof

MAX_PROOFS, MAX_PROOFS_OF_KEY = 131_072, 16_384
"""Maximum number of stored proofs, of all keys and of one."""
MAX_KEYS, MAX_KEYS_OF_OWNER = 8_192, 64
"""Maximum number of keys with stored proofs, of all principals and of one."""
SWEEP_SECONDS = 1.0
"""The number of seconds between two searches for old proofs while the storage is full."""
_DIGEST_BYTES = 12


@dataclass(slots=True)
class _KeyProofs:
    owner: str
    """The owner of the key."""
    proofs: dict[bytes, float] = field(default_factory=dict)
    """The times at which the key's proofs were made, by shortened digests of their ids, in the order of arrival."""
    floor: float = 0.0
    """A proof made no later than this is refused, as it may have been sent before."""


class SeenProofs:
    """The proofs of the last minutes, so that each is accepted once.

    If a key has made more proofs than can be stored, its older proofs are refused: only that key is affected. A limit
    on the keys of each principal leaves room for the keys of other principals.
    """

    def __init__(
        self, max_proofs: int = MAX_PROOFS, max_of_key: int = MAX_PROOFS_OF_KEY, max_keys: int = MAX_KEYS
    ) -> None:
        self._keys: dict[str, _KeyProofs] = {}
        self._owners: Counter[str] = Counter()
        self._count = 0
        self._max_proofs, self._max_of_key, self._max_keys = max_proofs, max_of_key, max_keys
        self._swept_at = 0.0

    def __len__(self) -> int:
        return self._count

    def add(self, proof: Proof, owner: str, now: float) -> bool:
        """Store `proof` from the principal called `owner`. Return False if it was seen before, or can't be stored."""
        # A search through all proofs takes a while. It is made at most once a second if it could make room, otherwise
        # once a window.
        lacks_room = proof.thumbprint not in self._keys and self._is_full(owner)
        if now - self._swept_at > (SWEEP_SECONDS if lacks_room else WINDOW_SECONDS):
            # Delete the proofs that are too old to be accepted.
            self._swept_at = now
            for thumbprint, proofs_of_key in list(self._keys.items()):
                recent = {digest: at for digest, at in proofs_of_key.proofs.items() if now - at <= WINDOW_SECONDS}
                self._count -= len(proofs_of_key.proofs) - len(recent)
                proofs_of_key.proofs = recent
                if not recent and now - proofs_of_key.floor > WINDOW_SECONDS:
                    del self._keys[thumbprint]
                    self._owners[proofs_of_key.owner] -= 1
            self._owners += Counter()  # removes owners without keys
        seen = self._keys.get(proof.thumbprint)
        if seen is None:
            if self._is_full(owner):
                return False
            seen = self._keys[proof.thumbprint] = _KeyProofs(owner)
            self._owners[owner] += 1
        digest = sha256(proof.id.encode("utf-8", "replace")).digest()[:_DIGEST_BYTES]
        # Below the floor it is unknown which proofs were sent, so all of them count as sent.
        if digest in seen.proofs or proof.at <= seen.floor:
            return False
        seen.proofs[digest] = proof.at
        self._count += 1
        if len(seen.proofs) > self._max_of_key:
            self._forget_first(seen)
        elif self._count > self._max_proofs:
            self._forget_first(max(self._keys.values(), key=lambda key: len(key.proofs)))
        return True

    def _is_full(self, owner: str) -> bool:
        return len(self._keys) >= self._max_keys or self._owners[owner] >= MAX_KEYS_OF_OWNER

    def _forget_first(self, seen: _KeyProofs) -> None:
        first = next(iter(seen.proofs))
        seen.floor = max(seen.floor, seen.proofs.pop(first))
        self._count -= 1


class Nonces:
    """Nonces for proofs, which need no memory: a time, signed (RFC 9449, section 9)."""

    def __init__(self, secret: bytes | None = None, seconds: float = 300.0) -> None:
        """`secret` is the same for all servers that accept each other's nonces. A nonce is accepted for at least
        `seconds`, and at most twice as long."""
        self._secret = secret or secrets.token_bytes(32)
        self._seconds = seconds

    def current(self, now: float) -> str:
        """Return the nonce to issue now."""
        return self._make_nonce(int(now // self._seconds))

    def is_ours(self, nonce: str | None, now: float) -> bool:
        """Return True if `nonce` was issued recently."""
        if nonce is None or not nonce.isascii():
            return False
        period = int(now // self._seconds)
        # The previous nonce is accepted as well, for a client that received it a moment ago.
        return any(hmac.compare_digest(nonce, self._make_nonce(number)) for number in (period, period - 1))

    def _make_nonce(self, period: int) -> str:
        digest = hmac.digest(self._secret, b"dpop nonce %d" % period, "sha256")
        return urlsafe_b64encode(digest[:18]).decode()
