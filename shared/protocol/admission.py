"""May this request be served, and who sends it? Every refusal of the protocol itself is made here.

In this order: the era, the envelope or the handshake, the method's row, the capability it needs, its params,
the state of earlier rounds. What passes is a request in flight, with its params as a model.
"""

from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from ..errors import InvalidParams, InvalidRequest, MethodNotFound
from .exchange import InFlight
from .handshake import FIRST_PEER, Handshake
from .identity import Identity
from .jsonrpc import Request, RequestId
from .methods import Method, MethodTable
from .peer import Peer
from .rounds import Round, open_round
from .sealing import Seal
from .stateless import admit, claims_envelope

__all__ = ["Admission"]

_BEFORE_INITIALIZE = ("initialize", "ping")


class Admission:
    """The gate of one session."""

    def __init__(self, identity: Identity, methods: MethodTable, handshake: Handshake) -> None:
        self._identity = identity
        self._methods = methods
        self._handshake = handshake

    def admit(
        self, request: Request, principal: str | None, *, seal: Seal, now: Callable[[], float], in_batch: bool
    ) -> tuple[InFlight, Any]:
        """The request in flight and its params. Raises RpcError where it may not be served."""
        peer, method = self._sender(request, principal)
        if method.name == "initialize" and in_batch:
            raise InvalidRequest("initialize may not be part of a batch")
        params = _validated(method, request.params)
        token = _progress_token(params.meta)
        if method.multi_round and peer.version.stateless:
            round_ = open_round(method.name, request.params, principal, seal=seal, now=now())
        else:
            round_ = Round()
        return InFlight(method, peer, request.params, round_, token), params

    def _sender(self, request: Request, principal: str | None) -> tuple[Peer, Method]:
        if claims_envelope(request.params):
            peer = admit(request.params, principal)
        elif self._handshake.peer is not None:
            peer = self._handshake.peer
        elif request.method in _BEFORE_INITIALIZE:
            peer = FIRST_PEER
        else:
            raise InvalidRequest(
                'send "initialize" first, or name a protocol version in "params._meta" with every request'
            )
        method = self._methods.find(request.method, peer.version)
        if method is None or not self._identity.has(method.capability):
            raise MethodNotFound(f"method not found: {request.method[:100]}")
        return peer, method


def _validated(method: Method, params: dict[str, Any]) -> Any:
    try:
        return method.params.model_validate(params)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidParams(f"{where}: {first['msg']}") from None


def _progress_token(meta: dict[str, Any]) -> RequestId | None:
    token = meta.get("progressToken")
    if token is None or type(token) in (str, int):
        return token
    raise InvalidParams('"progressToken" must be a string or an integer')
