"""Signed text comes back unchanged or not at all."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.errors import InvalidParams
from shared.protocol.signing import Signer, digest

SIGNER = Signer(b"key")
VALUES = [0, "", None, [1, "é"], {"a": {"b": [True]}}]


def test_what_is_signed_is_verified():
    assert [SIGNER.verify("state", SIGNER.sign("state", value)) for value in VALUES] == VALUES


def test_signed_text_is_fit_for_a_url():
    assert set(SIGNER.sign("state", "?>~ÿ" * 20)) <= set(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
    )


def test_the_same_key_in_another_process_opens_it():
    assert Signer(b"key").verify("state", SIGNER.sign("state", 5)) == 5


def refused(purpose, text, signer=SIGNER):
    with pytest.raises(InvalidParams, match="not issued by this server"):
        signer.verify(purpose, text)


def test_another_key_does_not_open_it():
    refused("state", SIGNER.sign("state", 5), Signer(b"other"))


def test_another_purpose_does_not_open_it():
    refused("cursor:tools", SIGNER.sign("cursor:prompts", 5))


def test_the_border_between_purpose_and_payload_can_not_be_moved():
    payload, _, tag = SIGNER.sign("a", 12345).partition(".")
    refused(f"a{payload[0]}", f"{payload[1:]}.{tag}")
    payload, _, tag = SIGNER.sign("ab", 12345).partition(".")
    refused("a", f"b{payload}.{tag}")


def test_a_purpose_that_holds_the_border_is_no_other_one():
    payload, _, tag = SIGNER.sign("a\0b", 12345).partition(".")
    refused("a", f"b\0{payload}.{tag}")


def test_what_was_never_signed_is_refused():
    for text in ("", ".", "..", "Mg", "Mg.", ".Mg", "Mg.Mg", "é.é", "\ud800", "a" * 10_000, "\0", "Mg==.x"):
        refused("state", text)


@settings(max_examples=50)
@given(st.data())
def test_no_character_can_be_changed(data):
    text = SIGNER.sign("state", {"round": 1})
    place = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.characters(codec="ascii").filter(lambda one: one != text[place]))
    refused("state", text[:place] + other + text[place + 1 :])


@settings(max_examples=50)
@given(st.text(max_size=30))
def test_opening_never_raises_anything_else(text):
    refused("state", text)


def test_the_refusal_says_what_was_refused_and_nothing_of_its_kind():
    with pytest.raises(InvalidParams, match=r"^this cursor was not issued by this server"):
        SIGNER.verify("cursor:tools", "x")


def test_a_digest_does_not_depend_on_the_order_of_keys():
    assert digest({"a": 1, "b": [{"c": 2, "d": 3}]}) == digest({"b": [{"d": 3, "c": 2}], "a": 1})


def test_a_digest_depends_on_every_value_and_its_type():
    others = [{"a": "1"}, {"a": 1.5}, {"a": [1]}, {"b": 1}, {"a": 1, "b": None}, {"a": True}]
    assert digest({"a": 1}) not in [digest(other) for other in others]
