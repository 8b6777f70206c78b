"""Protects proofs of possession against replay: stores the proofs that were used, and issues nonces."""

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
"""Minimum number of seconds between two searches for old proofs while the storage is full."""
_DIGEST_BYTES = 12


@dataclass(slots=True)
class _KeyProofs:
    owner: str
    """The principal that uses the key."""
    proofs: dict[bytes, float] = field(default_factory=dict)
    """The times at which the key's proofs were made, by shortened digests of their ids, in the order of arrival."""
    floor: float = 0.0
    """Proofs made at or before this time are refused: they are no longer stored, so they may have been used."""


class SeenProofs:
    """The proofs of the last minutes, so that each is accepted only once.

    If one key makes more proofs than can be stored, its older ones are refused, which affects only that key. The
    number of keys of each principal is limited too, so that there is room for those of others.
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
        """Store `proof`, which the principal with the key `owner` has sent. Return False if it was sent before, or
        can't be stored."""
        # Looking for old proofs takes a while, so this is done once per window, or once per second if there is no
        # room.
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
        key_proofs = self._keys.get(proof.thumbprint)
        if key_proofs is None:
            if self._is_full(owner):
                return False
            key_proofs = self._keys[proof.thumbprint] = _KeyProofs(owner)
            self._owners[owner] += 1
        digest = sha256(proof.id.encode("utf-8", "replace")).digest()[:_DIGEST_BYTES]
        # It is no longer known which of the proofs up to the floor were sent, so all of them count as sent.
        if digest in key_proofs.proofs or proof.at <= key_proofs.floor:
            return False
        key_proofs.proofs[digest] = proof.at
        self._count += 1
        if len(key_proofs.proofs) > self._max_of_key:
            self._drop_oldest(key_proofs)
        elif self._count > self._max_proofs:
            self._drop_oldest(max(self._keys.values(), key=lambda key: len(key.proofs)))
        return True

    def _is_full(self, owner: str) -> bool:
        return len(self._keys) >= self._max_keys or self._owners[owner] >= MAX_KEYS_OF_OWNER

    def _drop_oldest(self, key_proofs: _KeyProofs) -> None:
        first = next(iter(key_proofs.proofs))
        key_proofs.floor = max(key_proofs.floor, key_proofs.proofs.pop(first))
        self._count -= 1


class Nonces:
    """Nonces for proofs. They are signed numbers of time periods, so none has to be stored (RFC 9449, section 9)."""

    def __init__(self, secret: bytes | None = None, seconds: float = 300.0) -> None:
        """`secret` is the same for all servers that accept each other's nonces. A period lasts `seconds`; a nonce is
        accepted during its period and the next one."""
        self._secret = secret or secrets.token_bytes(32)
        self._seconds = seconds

    def current(self, now: float) -> str:
        """Return the nonce to send at the time `now`."""
        return self._make_nonce(int(now // self._seconds))

    def is_valid(self, nonce: str | None, now: float) -> bool:
        """Return True if `nonce` is that of the current period or of the previous one."""
        if nonce is None or not nonce.isascii():
            return False
        period = int(now // self._seconds)
        # The previous nonce is accepted as well, for a client that received it a moment ago.
        return any(hmac.compare_digest(nonce, self._make_nonce(number)) for number in (period, period - 1))

    def _make_nonce(self, period: int) -> str:
        digest = hmac.digest(self._secret, b"dpop nonce %d" % period, "sha256")
        return urlsafe_b64encode(digest[:18]).decode()
