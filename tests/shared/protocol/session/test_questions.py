"""Questions to the client: required capabilities, answers, and the state between rounds."""

import pytest

from shared.errors import InputRequired, InvalidParams, MissingCapability
from shared.protocol.identity import Peer, Principal
from shared.protocol.session.questions import (
    LIFETIME_SECONDS,
    MAX_ROUNDS,
    PendingQuestions,
    Round,
    elicit_form,
    elicit_url,
    find_missing_capability,
    list_roots,
    read_answer,
    read_answers,
    read_round,
    require_capabilities,
    sample,
    sign_state,
)
from shared.protocol.signing import Signer
from shared.protocol.versions import V2025_06_18, V2025_11_25, V2026_07_28, VERSIONS

TEXT = {"type": "object", "properties": {"a": {"type": "string"}}}
CHOICES = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string", "enum": ["x"]}}}}
MESSAGES = {"messages": [], "maxTokens": 1}
FORM, SEVERAL, URL = elicit_form("?", TEXT), elicit_form("?", CHOICES), elicit_url("?", "https://example.org", "id")
SAMPLE, TOOLS, ROOTS = sample(MESSAGES), sample({**MESSAGES, "tools": []}), list_roots()
ALL_DATES = tuple(version.date for version in VERSIONS)

# question, what the client declares, the versions in which it may be asked
MATRIX = [
    (FORM, {}, ()),
    (FORM, {"elicitation": None}, ()),
    (FORM, {"elicitation": {}}, ("2025-06-18", "2025-11-25", "2026-07-28")),
    (FORM, {"elicitation": {"form": {}}}, ("2025-06-18", "2025-11-25", "2026-07-28")),
    (FORM, {"elicitation": {"url": {}}}, ()),
    (FORM, {"elicitation": {"form": {}, "url": {}}}, ("2025-06-18", "2025-11-25", "2026-07-28")),
    (SEVERAL, {"elicitation": {}}, ("2025-11-25", "2026-07-28")),
    (URL, {"elicitation": {}}, ()),
    (URL, {"elicitation": {"form": {}}}, ()),
    (URL, {"elicitation": {"url": {}}}, ("2025-11-25", "2026-07-28")),
    (SAMPLE, {}, ()),
    (SAMPLE, {"sampling": {}}, ALL_DATES),
    (TOOLS, {"sampling": {}}, ()),
    (TOOLS, {"sampling": {"tools": {}}}, ("2025-11-25", "2026-07-28")),
    (ROOTS, {}, ()),
    (ROOTS, {"roots": {}}, ALL_DATES),
    (ROOTS, {"roots": {"listChanged": True}}, ALL_DATES),
]


def test_questions_need_a_declared_capability_and_a_version_that_has_them():
    for version in VERSIONS:
        for question, declared, dates in MATRIX:
            missing = find_missing_capability(question, Peer(version, declared))
            assert (missing is None) is (version.date in dates), (question, declared, version)


def test_missing_capabilities_have_the_form_of_a_declaration():
    for question, required in (
        (FORM, {"elicitation": {"form": {}}}),
        (URL, {"elicitation": {"url": {}}}),
        (SAMPLE, {"sampling": {}}),
        (TOOLS, {"sampling": {"tools": {}}}),
        (ROOTS, {"roots": {}}),
    ):
        with pytest.raises(MissingCapability) as caught:
            require_capabilities({"a": question}, Peer(V2026_07_28))
        assert caught.value.required == required


def test_each_of_several_questions_needs_its_capability():
    peer = Peer(V2026_07_28, {"roots": {}})
    require_capabilities({"a": ROOTS}, peer)
    with pytest.raises(MissingCapability):
        require_capabilities({"a": ROOTS, "b": SAMPLE}, peer)


def test_answers_are_read_as_models():
    answers = read_answers({"r": ROOTS}, {"r": {"roots": [{"uri": "file:///a"}]}, "other": 1}, V2026_07_28)
    assert answers["r"].roots[0].uri == "file:///a"


def test_questions_without_an_answer_require_input():
    with pytest.raises(InputRequired) as caught:
        read_answers({"r": ROOTS, "f": FORM}, {"r": {"roots": []}}, V2026_07_28)
    assert caught.value.requests == {"f": {"method": "elicitation/create", "params": FORM.params}}


def test_the_newest_version_has_no_elicitation_id():
    with pytest.raises(InputRequired) as caught:
        read_answers({"u": URL}, {}, V2026_07_28)
    assert caught.value.requests["u"]["params"] == {"mode": "url", "message": "?", "url": "https://example.org"}


def test_refusals_of_invalid_answers_name_the_question():
    for question, answer in (
        (FORM, {}),
        (FORM, {"action": "yes"}),
        (FORM, {"action": "accept", "content": []}),
        (FORM, {"action": "accept", "content": {"a": {"nested": 1}}}),
        (SAMPLE, {"role": "assistant"}),
        (SAMPLE, {"role": "system", "content": {}, "model": "m"}),
        *((ROOTS, answer) for answer in ({}, {"roots": [{}]}, None, [])),
    ):
        with pytest.raises(InvalidParams, match=f"the answer to {question.method} is invalid"):
            read_answer(question, answer)


def test_forms_accept_every_kind_of_value_and_unknown_keys():
    for value in ("a", 1, 1.5, True, ["a", "b"], None):
        assert read_answer(FORM, {"action": "accept", "content": {"a": value}}).content == {"a": value}
    assert read_answer(FORM, {"action": "decline", "later": 1, "_meta": {}}).action == "decline"


@pytest.mark.parametrize(
    "content",
    [
        {"type": "text", "text": "blue"},
        [{"type": "text", "text": "bl"}, {"type": "image"}, {"type": "text", "text": "ue"}],
    ],
)
def test_sampling_answers_have_text_in_one_or_several_blocks(content):
    assert read_answer(SAMPLE, {"role": "assistant", "content": content, "model": "m"}).text == "blue"


def test_each_kind_of_form_has_a_first_version():
    assert (FORM.first, SEVERAL.first, URL.first) == (V2025_06_18, V2025_11_25, V2025_11_25)


def test_ids_of_questions_are_unique_integers():
    pending = PendingQuestions()
    assert [pending.add("a"), pending.add("a"), pending.add("b")] == [1, 2, 3]


def test_answers_are_matched_to_their_call_once():
    pending = PendingQuestions()
    id_ = pending.add("a")
    assert [pending.remove(other) for other in (2, "1", None, "")] == [None] * 4
    assert (pending.remove(id_), pending.remove(id_)) == ("a", None)


ADA = Principal("ada")
SIGNER = Signer(b"key")
PARAMS = {"name": "order", "arguments": {"table": 1}}


def sign_round(round=None, params=PARAMS, *, method="tools/call", principal=ADA, now=0.0):
    return sign_state(method, params, principal, round or Round(), signer=SIGNER, now=now)


def open_signed_round(state, answers=None, params=PARAMS, *, method="tools/call", principal=ADA, now=0.0):
    request = {**params, "requestState": state, "inputResponses": answers or {}}
    return read_round(method, request, principal, signer=SIGNER, now=now)


def test_requests_without_a_state_are_the_first_round():
    assert read_round("tools/call", PARAMS, None, signer=SIGNER, now=0) == Round(1, {})
    params = {**PARAMS, "inputResponses": {"a": {"x": 1}}}
    assert read_round("tools/call", params, None, signer=SIGNER, now=0).answers == {"a": {"x": 1}}


def test_a_state_restores_the_earlier_answers():
    state = sign_round(Round(1, {"a": {"x": 1}}))
    assert open_signed_round(state, {"b": {"y": 2}}) == Round(2, {"a": {"x": 1}, "b": {"y": 2}})
    assert open_signed_round(state, {"a": {"x": 2}}).answers == {"a": {"x": 2}}


def test_states_are_independent_of_params_that_belong_to_the_round():
    params = {**PARAMS, "_meta": {"progressToken": 1}, "inputResponses": {}, "requestState": "old"}
    assert open_signed_round(sign_round(params=params)).number == 2


def test_a_state_is_valid_only_for_its_request_and_caller():
    params = [
        *({**PARAMS, "name": "deliver"}, {**PARAMS, "arguments": {"table": 2}}),
        *({**PARAMS, "arguments": {"table": "1"}}, {**PARAMS, "more": 1}),
    ]
    others = [{"method": "prompts/get"}, {"principal": Principal("bob")}, {"principal": None}]
    for other in [*others, *({"params": one} for one in params)]:
        with pytest.raises(InvalidParams, match="another request"):
            open_signed_round(sign_round(), **other)


def test_expired_states_are_refused():
    assert open_signed_round(sign_round(now=100), now=100 + LIFETIME_SECONDS).number == 2
    with pytest.raises(InvalidParams, match="expired"):
        open_signed_round(sign_round(now=100), now=101 + LIFETIME_SECONDS)


def test_states_that_were_not_issued_by_this_server_are_refused():
    for state in ("", "forged", "Mg.Mg", SIGNER.sign("cursor:tools", 2)):
        with pytest.raises(InvalidParams, match="not issued by this server"):
            open_signed_round(state)


def test_rounds_are_counted_up_to_a_limit():
    before = Round()
    for number in range(1, MAX_ROUNDS):
        assert before.number == number
        before = open_signed_round(sign_round(before))
    with pytest.raises(InvalidParams, match="not completed"):
        sign_round(before)
