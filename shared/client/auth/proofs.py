"""Proofs that a client possesses the key to which its tokens are bound, with the nonces that servers require."""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from joserfc.errors import JoseError
from joserfc.jwk import ECKey

from ...auth.dpop import make_proof, new_key
from ...errors import AuthError

MAX_NONCE_LENGTH = 1_024


class Proofs:
    """Makes proofs with one key (RFC 9449). A proof for a server contains the last nonce that the server has sent."""

    def __init__(self, now: Callable[[], float], stored_key: Mapping[str, Any] | None = None) -> None:
        """Use `stored_key`, or a new key. Raises `AuthError` if `stored_key` is not a key."""
        self._now = now
        self._nonces: dict[str, str] = {}
        try:
            self._key = new_key() if stored_key is None else ECKey.import_key(dict(stored_key))
        except (JoseError, ValueError, TypeError, KeyError):
            raise AuthError("the key of the stored tokens can't be read; log out and in again") from None

    def to_json(self) -> dict[str, Any]:
        """Return the key, including its private part."""
        return dict(self._key.as_dict(private=True))

    def headers(self, method: str, url: str, token: str | None = None) -> dict[str, str]:
        """Return the header with the proof for a request. A proof is made for one request only."""
        nonce = self.nonce(url)
        return {"dpop": make_proof(self._key, method, url, self._now(), token=token, nonce=nonce)}

    def nonce(self, url: str) -> str | None:
        """Return the last nonce that the server at `url` has sent."""
        return self._nonces.get(_origin(url))

    def learn(self, url: str, headers: Mapping[str, str]) -> bool:
        """Store the nonce in the headers of a response from `url`. Returns True if it is new."""
        nonce = next((value for name, value in headers.items() if name.lower() == "dpop-nonce"), None)
        # The same nonce is no reason to send the request again: the refused proof already contained it.
        if not nonce or len(nonce) > MAX_NONCE_LENGTH or self._nonces.get(_origin(url)) == nonce:
            return False
        self._nonces[_origin(url)] = nonce
        return True


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()
