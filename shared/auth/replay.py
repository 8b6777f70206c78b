"""What makes a proof of possession count once: the proofs that were seen, and nonces that are ours."""

import hmac
import secrets
from base64 import urlsafe_b64encode
from collections import Counter
from dataclasses import dataclass, field
from hashlib import sha256

from .dpop import WINDOW, Proof

MAX_PROOFS = 131_072
MAX_PROOFS_OF_KEY = 16_384
MAX_KEYS = 8_192
MAX_KEYS_OF_OWNER = 64
SWEEP_SECONDS = 1.0
"""Between two looks for what is too old, where there is no room left."""
_DIGEST = 12


@dataclass(slots=True)
class _Seen:
    owner: str
    """Whose key it is."""
    proofs: dict[bytes, float] = field(default_factory=dict)
    """By what is left of their ids, when they were made; in the order in which they came."""
    floor: float = 0.0
    """What was made no later than this counts no more, as somebody may have sent it before."""


class SeenProofs:
    """The proofs of the last minutes, so that none counts twice.

    Where a key has made more than can be kept, its older ones no longer count: only that key pays for it. Nor can one
    principal have so many keys that there is no room for those of others.
    """

    def __init__(
        self, max_proofs: int = MAX_PROOFS, max_of_key: int = MAX_PROOFS_OF_KEY, max_keys: int = MAX_KEYS
    ) -> None:
        self._keys: dict[str, _Seen] = {}
        self._owners: Counter[str] = Counter()
        self._count = 0
        self._max_proofs, self._max_of_key, self._max_keys = max_proofs, max_of_key, max_keys
        self._swept = 0.0

    def __len__(self) -> int:
        return self._count

    def add(self, proof: Proof, owner: str, now: float) -> bool:
        """Whether `proof` has come for the first time, from the principal called `owner`, and is kept."""
        # A look at all of them takes a while: each second at most where it could make room, else once a window.
        lacks_room = proof.thumbprint not in self._keys and self._is_full(owner)
        if now - self._swept > (SWEEP_SECONDS if lacks_room else WINDOW):
            self._sweep(now)
        seen = self._keys.get(proof.thumbprint)
        if seen is None:
            if self._is_full(owner):
                return False
            seen = self._keys[proof.thumbprint] = _Seen(owner)
            self._owners[owner] += 1
        digest = sha256(proof.id.encode("utf-8", "replace")).digest()[:_DIGEST]
        # Below the floor nobody knows any more what was sent: what may have been counts as if it was.
        if digest in seen.proofs or proof.at <= seen.floor:
            return False
        seen.proofs[digest] = proof.at
        self._count += 1
        if len(seen.proofs) > self._max_of_key:
            self._forget_first(seen)
        elif self._count > self._max_proofs:
            self._forget_first(max(self._keys.values(), key=lambda one: len(one.proofs)))
        return True

    def _is_full(self, owner: str) -> bool:
        return len(self._keys) >= self._max_keys or self._owners[owner] >= MAX_KEYS_OF_OWNER

    def _forget_first(self, seen: _Seen) -> None:
        first = next(iter(seen.proofs))
        seen.floor = max(seen.floor, seen.proofs.pop(first))
        self._count -= 1

    def _sweep(self, now: float) -> None:
        """Drops what is too old to be taken anyhow."""
        self._swept = now
        for thumbprint, seen in list(self._keys.items()):
            kept = {digest: at for digest, at in seen.proofs.items() if now - at <= WINDOW}
            self._count -= len(seen.proofs) - len(kept)
            seen.proofs = kept
            if not kept and now - seen.floor > WINDOW:
                del self._keys[thumbprint]
                self._owners[seen.owner] -= 1
        self._owners += Counter()  # without those who have none


class Nonces:
    """Nonces for proofs, which need no memory: a time, signed (RFC 9449, section 9)."""

    def __init__(self, secret: bytes | None = None, seconds: float = 300.0) -> None:
        """`secret` is the same for all who take each other's nonces. One is taken for `seconds` at least, and twice
        as long at most."""
        self._secret = secret or secrets.token_bytes(32)
        self._seconds = seconds

    def current(self, now: float) -> str:
        """The nonce to give out."""
        return self._at(int(now // self._seconds))

    def is_ours(self, nonce: str | None, now: float) -> bool:
        """Whether `nonce` was given out, and lately."""
        if nonce is None or not nonce.isascii():
            return False
        turn = int(now // self._seconds)
        # Also the one before: whoever was given it a moment ago has not used it yet.
        return any(hmac.compare_digest(nonce, self._at(one)) for one in (turn, turn - 1))

    def _at(self, turn: int) -> str:
        digest = hmac.digest(self._secret, b"dpop nonce %d" % turn, "sha256")
        return urlsafe_b64encode(digest[:18]).decode()
