"""Signing of values, refusal of text that was changed, and digests."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.errors import InvalidParams
from shared.protocol.signing import Signer, digest

SIGNER = Signer(b"key")
VALUES = [0, "", None, [1, "é"], {"a": {"b": [True]}}]


def test_verify_returns_the_signed_value():
    assert [SIGNER.verify("state", SIGNER.sign("state", value)) for value in VALUES] == VALUES


def test_signed_text_has_only_characters_safe_in_urls():
    assert set(SIGNER.sign("state", "?>~ÿ" * 20)) <= set(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
    )


def test_signers_with_the_same_key_verify_the_text():
    assert Signer(b"key").verify("state", SIGNER.sign("state", 5)) == 5


def check_refused(purpose, text, signer=SIGNER):
    with pytest.raises(InvalidParams, match="not issued by this server"):
        signer.verify(purpose, text)


def test_text_signed_with_another_key_is_refused():
    check_refused("state", SIGNER.sign("state", 5), Signer(b"other"))


def test_text_signed_for_another_purpose_is_refused():
    check_refused("cursor:tools", SIGNER.sign("cursor:prompts", 5))


def test_moving_the_border_between_purpose_and_payload_is_refused():
    payload, _, tag = SIGNER.sign("a", 12345).partition(".")
    check_refused(f"a{payload[0]}", f"{payload[1:]}.{tag}")
    payload, _, tag = SIGNER.sign("ab", 12345).partition(".")
    check_refused("a", f"b{payload}.{tag}")


def test_purposes_with_a_nul_character_do_not_match_a_shorter_purpose():
    payload, _, tag = SIGNER.sign("a\0b", 12345).partition(".")
    check_refused("a", f"b\0{payload}.{tag}")


def test_unsigned_text_is_refused():
    for text in ("", ".", "..", "Mg", "Mg.", ".Mg", "Mg.Mg", "é.é", "\ud800", "a" * 10_000, "\0", "Mg==.x"):
        check_refused("state", text)


@settings(max_examples=50)
@given(st.data())
def test_signed_text_with_a_changed_character_is_refused(data):
    text = SIGNER.sign("state", {"round": 1})
    place = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.characters(codec="ascii").filter(lambda one: one != text[place]))
    check_refused("state", text[:place] + other + text[place + 1 :])


@settings(max_examples=50)
@given(st.text(max_size=30))
def test_any_unsigned_text_raises_only_invalid_params(text):
    check_refused("state", text)


def test_refusals_name_the_purpose_without_its_list():
    with pytest.raises(InvalidParams, match=r"^this cursor was not issued by this server"):
        SIGNER.verify("cursor:tools", "x")


def test_digests_are_independent_of_the_order_of_keys():
    assert digest({"a": 1, "b": [{"c": 2, "d": 3}]}) == digest({"b": [{"d": 3, "c": 2}], "a": 1})


def test_digests_depend_on_every_value_and_its_type():
    others = [{"a": "1"}, {"a": 1.5}, {"a": [1]}, {"b": 1}, {"a": 1, "b": None}, {"a": True}]
    assert digest({"a": 1}) not in [digest(other) for other in others]
