"""What may be asked of whom, which answers count, and what is remembered from round to round."""

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
    open_round,
    read_answer,
    read_answers,
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


def test_only_what_the_client_declared_in_a_version_that_has_it_is_asked():
    for version in VERSIONS:
        for question, declared, dates in MATRIX:
            missing = find_missing_capability(question, Peer(version, declared))
            assert (missing is None) is (version.date in dates), (question, declared, version)


def test_what_is_missing_is_shaped_like_a_declaration():
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


def test_of_several_questions_each_must_be_allowed():
    peer = Peer(V2026_07_28, {"roots": {}})
    require_capabilities({"a": ROOTS}, peer)
    with pytest.raises(MissingCapability):
        require_capabilities({"a": ROOTS, "b": SAMPLE}, peer)


def test_answers_that_were_brought_are_models():
    answers = read_answers({"r": ROOTS}, {"r": {"roots": [{"uri": "file:///a"}]}, "other": 1}, V2026_07_28)
    assert answers["r"].roots[0].uri == "file:///a"


def test_what_has_no_answer_is_asked():
    with pytest.raises(InputRequired) as caught:
        read_answers({"r": ROOTS, "f": FORM}, {"r": {"roots": []}}, V2026_07_28)
    assert caught.value.requests == {"f": {"method": "elicitation/create", "params": FORM.params}}


def test_the_newest_version_has_no_elicitation_id():
    with pytest.raises(InputRequired) as caught:
        read_answers({"u": URL}, {}, V2026_07_28)
    assert caught.value.requests["u"]["params"] == {"mode": "url", "message": "?", "url": "https://example.org"}


def test_an_answer_that_does_not_fit_names_the_question():
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


def test_a_form_may_hold_every_kind_of_value_and_unknown_keys_are_ignored():
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
def test_the_text_of_a_model_is_one_block_or_several(content):
    assert read_answer(SAMPLE, {"role": "assistant", "content": content, "model": "m"}).text == "blue"


def test_the_versions_of_forms():
    assert (FORM.first, SEVERAL.first, URL.first) == (V2025_06_18, V2025_11_25, V2025_11_25)


def test_our_ids_are_integers_that_never_come_twice():
    asked = PendingQuestions()
    assert [asked.enter("a"), asked.enter("a"), asked.enter("b")] == [1, 2, 3]


def test_an_answer_finds_the_call_it_is_about_once():
    asked = PendingQuestions()
    id_ = asked.enter("a")
    assert [asked.settle(other) for other in (2, "1", None, "")] == [None] * 4
    assert (asked.settle(id_), asked.settle(id_)) == ("a", None)


ADA = Principal("ada")
SIGNER = Signer(b"key")
PARAMS = {"name": "order", "arguments": {"table": 1}}


def closed(before=None, params=PARAMS, *, method="tools/call", principal=ADA, now=0.0):
    return sign_state(method, params, principal, before or Round(), signer=SIGNER, now=now)


def opened(state, answers=None, params=PARAMS, *, method="tools/call", principal=ADA, now=0.0):
    brought = {**params, "requestState": state, "inputResponses": answers or {}}
    return open_round(method, brought, principal, signer=SIGNER, now=now)


def test_without_a_state_it_is_the_first_round_and_answers_may_come_along():
    assert open_round("tools/call", PARAMS, None, signer=SIGNER, now=0) == Round(1, {})
    params = {**PARAMS, "inputResponses": {"a": {"x": 1}}}
    assert open_round("tools/call", params, None, signer=SIGNER, now=0).answers == {"a": {"x": 1}}


def test_the_state_brings_earlier_answers_back():
    state = closed(Round(1, {"a": {"x": 1}}))
    assert opened(state, {"b": {"y": 2}}) == Round(2, {"a": {"x": 1}, "b": {"y": 2}})
    assert opened(state, {"a": {"x": 2}}).answers == {"a": {"x": 2}}


def test_what_belongs_to_the_round_itself_is_no_part_of_the_request():
    params = {**PARAMS, "_meta": {"progressToken": 1}, "inputResponses": {}, "requestState": "old"}
    assert opened(closed(params=params)).number == 2


def test_a_state_is_good_for_the_very_request_of_the_very_caller():
    params = [
        *({**PARAMS, "name": "deliver"}, {**PARAMS, "arguments": {"table": 2}}),
        *({**PARAMS, "arguments": {"table": "1"}}, {**PARAMS, "more": 1}),
    ]
    others = [{"method": "prompts/get"}, {"principal": Principal("bob")}, {"principal": None}]
    for other in [*others, *({"params": one} for one in params)]:
        with pytest.raises(InvalidParams, match="another request"):
            opened(closed(), **other)


def test_a_state_is_good_until_it_expires():
    assert opened(closed(now=100), now=100 + LIFETIME_SECONDS).number == 2
    with pytest.raises(InvalidParams, match="expired"):
        opened(closed(now=100), now=101 + LIFETIME_SECONDS)


def test_a_state_we_did_not_make_is_refused():
    for state in ("", "forged", "Mg.Mg", SIGNER.sign("cursor:tools", 2)):
        with pytest.raises(InvalidParams, match="not issued by this server"):
            opened(state)


def test_rounds_are_counted_and_end():
    before = Round()
    for number in range(1, MAX_ROUNDS):
        assert before.number == number
        before = opened(closed(before))
    with pytest.raises(InvalidParams, match="not completed"):
        closed(before)
