"""Checks that the sender of a token holds the key to which it is bound (RFC 9449, sections 4.3, 7 and 9)."""

from hashlib import sha256
from hmac import compare_digest
from typing import Literal

from ..protocol.http.protected import ProtectedResource
from ..protocol.http.rules import Denial, HttpRequest
from .claims import Grant
from .dpop import WINDOW_SECONDS, BadProof, Proof, check_proof
from .jose import ALGORITHMS
from .replay import Nonces, SeenProofs

_RETRY_AFTER = "2"  # seconds


class Possession:
    """Requires proofs, and checks them."""

    def __init__(self, mode: Literal["bound", "required", "nonce"] = "bound", secret: bytes | None = None) -> None:
        """`bound`: tokens that are bound to a key require a proof. `required`: only bound tokens are accepted.
        `nonce`: in addition, proofs must contain one of this server's nonces, signed with `secret`, which is the same
        for all replicas."""
        self.needs_bound = mode != "bound"
        """True if only bound tokens are accepted."""
        self._nonces = Nonces(secret) if mode == "nonce" else None
        self._seen = SeenProofs()

    async def check(
        self, request: HttpRequest, granted: Grant, token: str, is_dpop: bool, now: float
    ) -> Denial | None:
        """Return the refusal of a valid token from this sender, sent with a proof or as a bearer token; None if it is
        accepted."""
        resource = request.resource
        if resource is None:
            return Denial("the server has no URI for which a token could be issued", "", 401)
        if granted.thumbprint is None and not is_dpop and not self.needs_bound:
            return None
        if granted.thumbprint is None:
            return _refuse(resource, "invalid_token", "the token is not bound to a key")
        # A thief would send a bound token in the Bearer scheme (RFC 9449, section 7.2).
        if not is_dpop:
            return _refuse(resource, "invalid_token", "the token is bound to a key and needs a proof")
        try:
            # The proof contains the URI that clients know, not the address that a proxy uses.
            proof = check_proof(request.headers.get("dpop") or "", request.method, resource.uri, now, token=token)
        except BadProof as error:
            return _refuse(resource, BadProof.code, str(error))
        fault = self._check_use(resource, granted, proof, now)
        if fault is not None or request.claim is None:
            return fault
        # The proof is new here, but may have been used on another replica. The second window is for replicas whose
        # clock is behind this one's, which accept the proof for longer.
        seconds = proof.at + WINDOW_SECONDS - now + WINDOW_SECONDS
        try:
            # An id is unique for its key only: two clients may choose the same one.
            key_and_id = f"{proof.thumbprint} {proof.id}".encode("utf-8", "surrogatepass")
            is_new = await request.claim(f"proof:{sha256(key_and_id).hexdigest()}", seconds)
        except OSError:
            # Another replica may have seen the proof, and an attacker with a copy would wait for this moment.
            return Denial("proofs can't be checked at the moment", "", 503, (("retry-after", _RETRY_AFTER),))
        return None if is_new else _refuse(resource, BadProof.code, "the proof was already used")

    def _check_use(self, resource: ProtectedResource, granted: Grant, proof: Proof, now: float) -> Denial | None:
        thumbprint = granted.thumbprint or ""
        if not compare_digest(thumbprint.encode(), proof.thumbprint.encode()):
            return _refuse(resource, BadProof.code, "the proof is signed with a different key")
        # Check the nonce before recording the proof as used: the client will send a new proof, and this one will
        # never be accepted.
        if self._nonces is not None and not self._nonces.is_ours(proof.nonce, now):
            headers = (("dpop-nonce", self._nonces.current(now)),)
            return _refuse(resource, "use_dpop_nonce", "the proof needs the nonce in this response", headers)
        if not self._seen.add(proof, granted.principal.key, now):
            return _refuse(resource, BadProof.code, "the proof was already used")
        return None


def _refuse(
    resource: ProtectedResource, error: str, reason: str, headers: tuple[tuple[str, str], ...] = ()
) -> Denial:
    challenge = resource.challenge(error, reason, scheme="DPoP", algorithms=sorted(ALGORITHMS))
    return Denial(reason, challenge, 401, headers)
