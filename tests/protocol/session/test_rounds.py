"""The memory of a call that takes several rounds."""

import pytest

from shared.errors import InvalidParams
from shared.protocol.identity import Principal
from shared.protocol.session.rounds import LIFETIME, MAX_ROUNDS, Round, close_state, open_round
from shared.protocol.signing import Seal

ADA = Principal("ada")
SEAL = Seal(b"key")
PARAMS = {"name": "order", "arguments": {"table": 1}}


def closed(before=None, params=PARAMS, *, method="tools/call", principal=ADA, now=0.0):
    return close_state(method, params, principal, before or Round(), seal=SEAL, now=now)


def opened(state, answers=None, params=PARAMS, *, method="tools/call", principal=ADA, now=0.0):
    brought = {**params, "requestState": state, "inputResponses": answers or {}}
    return open_round(method, brought, principal, seal=SEAL, now=now)


def test_without_a_state_it_is_the_first_round():
    assert open_round("tools/call", PARAMS, None, seal=SEAL, now=0) == Round(1, {})


def test_answers_may_come_along_in_the_first_round():
    params = {**PARAMS, "inputResponses": {"a": {"x": 1}}}
    assert open_round("tools/call", params, None, seal=SEAL, now=0).answers == {"a": {"x": 1}}


def test_the_state_brings_earlier_answers_back():
    state = closed(Round(1, {"a": {"x": 1}}))
    assert opened(state, {"b": {"y": 2}}) == Round(2, {"a": {"x": 1}, "b": {"y": 2}})


def test_a_new_answer_counts_more_than_an_old_one():
    assert opened(closed(Round(1, {"a": {"x": 1}})), {"a": {"x": 2}}).answers == {"a": {"x": 2}}


def test_what_belongs_to_the_round_itself_is_no_part_of_the_request():
    params = {**PARAMS, "_meta": {"progressToken": 1}, "inputResponses": {}, "requestState": "old"}
    assert opened(closed(params=params)).number == 2


@pytest.mark.parametrize(
    "other",
    [
        {"method": "prompts/get"},
        {"principal": Principal("bob")},
        {"principal": None},
        {"params": {**PARAMS, "name": "deliver"}},
        {"params": {**PARAMS, "arguments": {"table": 2}}},
        {"params": {**PARAMS, "arguments": {"table": "1"}}},
        {"params": {**PARAMS, "more": 1}},
    ],
    ids=str,
)
def test_a_state_is_good_for_the_very_request_of_the_very_caller(other):
    with pytest.raises(InvalidParams, match="another request"):
        opened(closed(), **other)


def test_a_state_is_good_until_it_expires():
    assert opened(closed(now=100), now=100 + LIFETIME).number == 2
    with pytest.raises(InvalidParams, match="expired"):
        opened(closed(now=100), now=101 + LIFETIME)


@pytest.mark.parametrize("state", ["", "forged", "Mg.Mg", SEAL.close("cursor:tools", 2)])
def test_a_state_we_did_not_make_is_refused(state):
    with pytest.raises(InvalidParams, match="not issued here"):
        opened(state)


def test_rounds_are_counted_and_end():
    before = Round()
    for number in range(1, MAX_ROUNDS):
        assert before.number == number
        before = opened(closed(before))
    with pytest.raises(InvalidParams, match="not settled"):
        closed(before)
