"""Admission of requests: all checks that the protocol requires before a request is served. They are made in this
order: the envelope or the handshake, depending on the era; the method's row; its params; the state of earlier rounds.
A request that passes becomes a `Call`.
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
from .questions import FIRST_ROUND, read_round

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
        # A stateless request may also arrive in a session with a handshake: each such request is independent
        # (2026-07-28, Versioning).
        if "_meta" in request.params and claims_envelope(request.params):
            peer = admit(request.params, principal)
        elif self._handshake.peer is not None:
            peer = self._handshake.peer
            if peer.principal is not principal:  # this request has another token than the handshake, e.g. a newer one
                peer = replace(peer, principal=principal)
        elif request.method in _BEFORE_INITIALIZE:
            peer = FIRST_PEER
        else:
            raise InvalidRequest(
                'send "initialize" first, or name a protocol version in "params._meta" with every request'
            )
        # The table is read here first, since nearly all methods have a row of their own.
        method = self._methods.get((request.method, peer.version)) or find_method(self._methods, request.method, peer)
        if method is None:
            raise MethodNotFound(f"method not found: {request.method[:100]}")
        validator, raw = method.params.__pydantic_validator__, request.params
        try:
            # `model_validate` would call this method too; without it every request takes less time.
            params = validator.validate_python(raw)
        except ValidationError as error:
            # Clients in languages without optional fields send null instead of omitting a field.
            raw = {name: value for name, value in raw.items() if value is not None}
            try:
                params = validator.validate_python(raw)
            except ValidationError:
                raise InvalidParams(describe_first_error(error)) from None
        token = params.meta.get("progressToken")
        # `isinstance` would accept True as an int.
        if token is not None and type(token) not in (str, int):
            raise InvalidParams('"progressToken" must be a string or an integer')
        # In older versions `requestState` has no meaning.
        if method.multi_round and peer.version.stateless:
            round_ = read_round(method.name, raw, principal, signer=self._signer, now=self._now())
        else:
            round_ = FIRST_ROUND
        return Call(request.id, method, params, peer, raw, round_, token, request.weight)
