"""The memory of a call that takes several rounds (2026-07-28, multi-round-trip requests).

The server keeps nothing between rounds. What it must know again travels in the sealed `requestState`: which
request it belongs to, for whom, until when, how many rounds there were, and the answers so far. A state
that is forged, expired, or brought with another request or by somebody else is refused.
"""

from dataclasses import field
from typing import Any

from ...errors import InvalidParams
from ..identity import Principal
from ..records import record
from ..signing import Seal, digest

__all__ = ["FIRST_ROUND", "LIFETIME", "MAX_ROUNDS", "Round", "close_state", "open_round"]

LIFETIME = 3600.0
"""Seconds a user may take to answer."""
MAX_ROUNDS = 10

_OWN_PARAMS = ("_meta", "inputResponses", "requestState")


@record
class Round:
    """Which round a call is in, and every answer it has brought so far by key."""

    number: int = 1
    answers: dict[str, Any] = field(default_factory=dict)


FIRST_ROUND = Round()
"""What a call begins that brings nothing along."""


def open_round(method: str, params: dict[str, Any], principal: Principal | None, *, seal: Seal, now: float) -> Round:
    """The round a request with these `params` begins. Raises InvalidParams for a state not made for it."""
    answers = params.get("inputResponses")
    state = params.get("requestState")
    if state is None:
        return FIRST_ROUND if answers is None else Round(answers=answers)
    opened = seal.open("requestState", state)
    if opened["request"] != _binding(method, params, principal):
        raise InvalidParams("this requestState belongs to another request")
    if opened["expires"] < now:
        raise InvalidParams("this requestState has expired; start over without it")
    return Round(opened["round"] + 1, {**opened["answers"], **(answers or {})})


def close_state(
    method: str, params: dict[str, Any], principal: Principal | None, before: Round, *, seal: Seal, now: float
) -> str:
    """The state that brings `before` back. Raises InvalidParams when there were too many rounds."""
    if before.number >= MAX_ROUNDS:
        raise InvalidParams(f"this request was not settled in {MAX_ROUNDS} rounds")
    state = {
        "request": _binding(method, params, principal),
        "expires": now + LIFETIME,
        "round": before.number,
        "answers": before.answers,
    }
    return seal.close("requestState", state)


def _binding(method: str, params: dict[str, Any], principal: Principal | None) -> str:
    own = {name: value for name, value in params.items() if name not in _OWN_PARAMS}
    return digest([method, own, None if principal is None else principal.key])
