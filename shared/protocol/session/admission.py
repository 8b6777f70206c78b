"""Admission of requests, and their senders. Every refusal by the protocol itself is made here, in this order: the
era, the envelope or the handshake, the method's row, its params, the state of earlier rounds. A request that passes
is a call.
"""

from collections.abc import Callable
from dataclasses import replace

from pydantic import ValidationError

from ...errors import InvalidParams, InvalidRequest, MethodNotFound
from ..identity import Principal
from ..methods import MethodTable, find_method
from ..signing import Signer
from ..types.base import describe_first_error
from ..wire.jsonrpc import Request
from .envelope import admit, claims_envelope
from .events import Call
from .handshake import FIRST_PEER, Handshake
from .questions import FIRST_ROUND, open_round

_BEFORE_INITIALIZE = ("initialize", "ping")


class Admission:
    """Admits the requests of one session."""

    __slots__ = ("_handshake", "_methods", "_now", "_signer")

    def __init__(self, methods: MethodTable, handshake: Handshake, signer: Signer, now: Callable[[], float]) -> None:
        self._methods = methods
        self._handshake = handshake
        self._signer = signer
        self._now = now

    def admit(self, request: Request, principal: Principal | None) -> Call:
        """Return the call that `request` begins. Raises RpcError if it may not be served."""
        # A session may contain such requests, since one process may send both kinds, and each of them is independent
        # (2026-07-28, Versioning).
        if "_meta" in request.params and claims_envelope(request.params):
            peer = admit(request.params, principal)
        elif self._handshake.peer is not None:
            peer = self._handshake.peer
            if peer.principal is not principal:  # the request has a newer token than the handshake
                peer = replace(peer, principal=principal)
        elif request.method in _BEFORE_INITIALIZE:
            peer = FIRST_PEER
        else:
            raise InvalidRequest(
                'send "initialize" first, or name a protocol version in "params._meta" with every request'
            )
        # Nearly all methods have their own row.
        method = self._methods.get((request.method, peer.version)) or find_method(self._methods, request.method, peer)
        if method is None:
            raise MethodNotFound(f"method not found: {request.method[:100]}")
        validator, raw = method.params.__pydantic_validator__, request.params
        try:
            # This is what `model_validate` calls; the direct call saves time for every request.
            params = validator.validate_python(raw)
        except ValidationError as error:
            # Clients in languages without optional fields send null instead of omitting one.
            raw = {name: value for name, value in raw.items() if value is not None}
            try:
                params = validator.validate_python(raw)
            except ValidationError:
                raise InvalidParams(describe_first_error(error)) from None
        token = params.meta.get("progressToken")
        # True is an int to `isinstance`, but not a token.
        if token is not None and type(token) not in (str, int):
            raise InvalidParams('"progressToken" must be a string or an integer')
        # In older versions, `requestState` is an ordinary param without a meaning.
        if method.multi_round and peer.version.stateless:
            round_ = open_round(method.name, raw, principal, signer=self._signer, now=self._now())
        else:
            round_ = FIRST_ROUND
        return Call(request.id, method, params, peer, raw, round_, token, request.weight)
