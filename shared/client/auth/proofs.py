"""The proofs of one client that it has the key its tokens are bound to, with the nonces that servers want in them."""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from joserfc.errors import JoseError
from joserfc.jwk import ECKey

from ...auth.dpop import make_proof, new_key
from ...errors import AuthError

MAX_NONCE = 1_024


class Proofs:
    """Makes proofs with one key (RFC 9449). The nonce of a server is the last one that it has given out."""

    def __init__(self, now: Callable[[], float], kept: Mapping[str, Any] | None = None) -> None:
        """`kept` is a key of before. Raises `AuthError` where it is none."""
        self._now = now
        self._nonces: dict[str, str] = {}
        try:
            self._key = new_key() if kept is None else ECKey.import_key(dict(kept))
        except (JoseError, ValueError, TypeError, KeyError):
            raise AuthError("the key of the stored tokens can't be read; log out and in again") from None

    def to_json(self) -> dict[str, Any]:
        """The key, with its secret."""
        return dict(self._key.as_dict(private=True))

    def headers(self, method: str, url: str, token: str | None = None) -> dict[str, str]:
        """The proof that goes with a request, which is made once for each."""
        nonce = self.nonce(url)
        return {"dpop": make_proof(self._key, method, url, self._now(), token=token, nonce=nonce)}

    def nonce(self, url: str) -> str | None:
        """The nonce that the server at `url` has given out last."""
        return self._nonces.get(_origin(url))

    def learn(self, url: str, headers: Mapping[str, str]) -> bool:
        """Remembers the nonce of an answer from `url`; whether it is another one than before."""
        nonce = next((value for name, value in headers.items() if name.lower() == "dpop-nonce"), None)
        # The same one again is no reason to ask once more: the proof had it, and was refused for something else.
        if not nonce or len(nonce) > MAX_NONCE or self._nonces.get(_origin(url)) == nonce:
            return False
        self._nonces[_origin(url)] = nonce
        return True


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()
