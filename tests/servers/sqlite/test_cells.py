"""Values as JSON and as text."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servers.sqlite.errors import SqliteError
from servers.sqlite.reading.cells import column, stored

INTEGERS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.one_of(st.none(), INTEGERS, st.floats(allow_nan=False), TEXTS, st.binary())


def one(value: Any, max_bytes: int = 1_000) -> tuple[Any, str]:
    made = column([value], max_bytes)
    return made.cells[0], made.texts[0]


@given(st.lists(VALUES, min_size=1))
def test_every_value_comes_back_through_json(values: list[Any]) -> None:
    cells = json.loads(json.dumps(list(column(values, 100_000).cells)))
    back = [stored(cell) for cell in cells]
    assert back == values
    assert [type(value) for value in back] == [type(value) for value in values]


@given(st.lists(VALUES, min_size=1))
def test_no_text_of_a_table_has_a_line_end_or_a_border(values: list[Any]) -> None:
    for value, text in zip(values, column(values, 100_000).texts, strict=True):
        assert "\n" not in text
        assert "\r" not in text
        assert "|" not in text or isinstance(value, str)


@given(st.lists(VALUES, min_size=2, max_size=2))
def test_different_values_have_different_texts(values: list[Any]) -> None:
    one, other = column(values, 100_000).texts
    if type(values[0]) is type(values[1]):
        assert (one == other) == (values[0] == values[1] and str(values[0]) == str(values[1]))
    else:
        assert one != other


@given(st.lists(TEXTS, min_size=1))
def test_a_text_is_written_the_same_whatever_stands_beside_it(texts: list[str]) -> None:
    assert column(texts, 100_000).texts == column([*texts, None, 1], 100_000).texts[: len(texts)]


@pytest.mark.parametrize("value", [2**53, -(2**53), 0, 1.5, "text", None])
def test_what_json_can_hold_stays_as_it_is(value: Any) -> None:
    assert one(value)[0] == value


def test_an_integer_beyond_2_to_the_53_is_an_object() -> None:
    assert one(2**53 + 1)[0] == {"type": "integer", "value": "9007199254740993"}


def test_infinity_is_an_object() -> None:
    assert one(-math.inf)[0] == {"type": "real", "value": "-Infinity"}


def test_bytes_are_base64_with_their_number() -> None:
    assert one(b"\x00\xff")[0] == {"type": "blob", "bytes": 2, "base64": "AP8="}


def test_text_that_is_no_utf8_keeps_its_bytes() -> None:
    broken = b"a\xff".decode("utf-8", "surrogateescape")
    assert one(broken)[0] == {"type": "text", "bytes": 2, "base64": "Yf8="}


def test_a_long_text_is_cut_between_characters() -> None:
    assert one("äöü", 3)[0] == {"type": "text", "bytes": 6, "value": "ä", "truncated": True}


def test_long_bytes_are_cut() -> None:
    assert one(b"123456", 3)[0] == {"type": "blob", "bytes": 6, "base64": "MTIz", "truncated": True}


@pytest.mark.parametrize(
    ("value", "text"),
    [("NULL", '"NULL"'), (None, "NULL"), ("1", '"1"'), (1, "1"), ("", '""'), ("a|b", '"a|b"'), ("a b", "a b")],
)
def test_a_text_that_could_be_taken_for_something_else_stands_in_quotes(value: Any, text: str) -> None:
    assert one(value)[1] == text


@pytest.mark.parametrize(
    "value",
    [
        [1],
        {},
        {"type": "blob", "base64": "?"},
        {"type": "blob", "base64": "YQ==", "truncated": True},
        {"type": "integer", "value": "12x"},
        {"type": "text", "base64": "/w=="},
    ],
)
def test_a_parameter_that_is_no_value_is_refused(value: Any) -> None:
    with pytest.raises(SqliteError) as raised:
        stored(value)
    assert raised.value.code == "bad_parameters"
