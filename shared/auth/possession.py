"""Checks that the sender of a token has the key to which the token is bound (RFC 9449, sections 4.3, 7 and 9)."""

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
    """Decides which requests need a proof, and checks it."""

    def __init__(self, mode: Literal["bound", "required", "nonce"] = "bound", secret: bytes | None = None) -> None:
        """With the mode `bound`, tokens that are bound to a key require a proof. With `required`, only bound tokens
        are accepted. With `nonce`, proofs must also contain a nonce from this server, which `secret` signs; it is the
        same for all replicas."""
        self.requires_bound_tokens = mode != "bound"
        """True if only bound tokens are accepted."""
        self._nonces = Nonces(secret) if mode == "nonce" else None
        self._seen = SeenProofs()

    async def check(
        self, request: HttpRequest, granted: Grant, token: str, is_dpop: bool, now: float
    ) -> Denial | None:
        """Check the proof of a request with a valid token, if it needs one. Return None if the request is accepted,
        else the refusal. `is_dpop` is true if the token was sent with the scheme DPoP."""
        resource = request.resource
        if resource is None:
            return Denial("the server has no URI for which a token could be issued", "", 401)
        if granted.thumbprint is None and not is_dpop and not self.requires_bound_tokens:
            return None
        if granted.thumbprint is None:
            return _refuse(resource, "invalid_token", "the token is not bound to a key")
        # Otherwise a thief could send a stolen bound token as a bearer token (RFC 9449, section 7.2).
        if not is_dpop:
            return _refuse(resource, "invalid_token", "the token is bound to a key and needs a proof")
        try:
            # The proof contains the public URI, not the address at which a proxy reaches this server.
            proof = check_proof(request.headers.get("dpop") or "", request.method, resource.uri, now, token=token)
        except BadProof as error:
            return _refuse(resource, BadProof.code, str(error))
        fault = self._check_use(resource, granted, proof, now)
        if fault is not None or request.claim is None:
            return fault
        # The proof is new here, but may have been used on another replica. It is stored for one window longer, since
        # a replica with a slow clock accepts it for longer.
        seconds = proof.at + WINDOW_SECONDS - now + WINDOW_SECONDS
        try:
            # Two clients may choose the same id, so it is only unique together with the key.
            key_and_id = f"{proof.thumbprint} {proof.id}".encode("utf-8", "surrogatepass")
            is_new = await request.claim(f"proof:{sha256(key_and_id).hexdigest()}", seconds)
        except OSError:
            # Refuse it: another replica may have seen the proof, and an attacker with a copy would wait for such an
            # outage.
            return Denial("proofs can't be checked at the moment", "", 503, (("retry-after", _RETRY_AFTER),))
        return None if is_new else _refuse(resource, BadProof.code, "the proof was already used")

    def _check_use(self, resource: ProtectedResource, granted: Grant, proof: Proof, now: float) -> Denial | None:
        thumbprint = granted.thumbprint or ""
        if not compare_digest(thumbprint.encode(), proof.thumbprint.encode()):
            return _refuse(resource, BadProof.code, "the proof is signed with a different key")
        # Check the nonce before the proof is recorded as used: if the nonce is wrong, the client sends another proof,
        # and this one need not be stored.
        if self._nonces is not None and not self._nonces.is_valid(proof.nonce, now):
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
