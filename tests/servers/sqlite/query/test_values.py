"""Values as JSON."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servers.sql.errors import SqlError
from servers.sql.texts import format_row
from servers.sqlite.query.values import decode_value, encode_cells, encode_row

INTEGERS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.one_of(st.none(), INTEGERS, st.floats(allow_nan=False), TEXTS, st.binary())


def one(value: Any, max_bytes: int = 1_000) -> Any:
    return encode_cells([value], max_bytes)[0]


@given(st.lists(VALUES, min_size=1))
def test_every_value_comes_back_through_json(values: list[Any]) -> None:
    back = [decode_value(cell) for cell in json.loads(format_row(encode_cells(values, 100_000)))]
    assert back == values
    assert [type(value) for value in back] == [type(value) for value in values]


@given(st.lists(st.one_of(VALUES, st.text()), min_size=1), st.integers(16, 50))
def test_a_single_row_is_as_columns_of_one_value(values: list[Any], max_bytes: int) -> None:
    assert list(encode_row(values, max_bytes)) == [one(value, max_bytes) for value in values]


@given(st.lists(VALUES, min_size=1))
def test_a_row_is_one_line(values: list[Any]) -> None:
    assert not set(format_row(encode_cells(values, 100_000))) & {"\n", "\r"}


@pytest.mark.parametrize("value", [2**53, -(2**53), 0, 1.5, "text", None])
def test_what_json_can_hold_stays_as_it_is(value: Any) -> None:
    assert one(value) == value


def test_an_integer_beyond_2_to_the_53_is_an_object() -> None:
    assert one(2**53 + 1) == {"type": "integer", "value": "9007199254740993"}


def test_infinity_is_an_object() -> None:
    assert one(-math.inf) == {"type": "real", "value": "-Infinity"}


def test_bytes_are_base64_with_their_number() -> None:
    assert one(b"\x00\xff") == {"type": "blob", "bytes": 2, "base64": "AP8="}


def test_text_that_is_no_utf8_keeps_its_bytes() -> None:
    broken = b"a\xff".decode("utf-8", "surrogateescape")
    assert one(broken) == {"type": "text", "bytes": 2, "base64": "Yf8="}


def test_a_long_text_is_cut_between_characters() -> None:
    assert one("äöü", 3) == {"type": "text", "bytes": 6, "value": "ä", "truncated": True}


def test_long_bytes_are_cut() -> None:
    assert one(b"123456", 3) == {"type": "blob", "bytes": 6, "base64": "MTIz", "truncated": True}


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
    with pytest.raises(SqlError) as raised:
        decode_value(value)
    assert raised.value.code == "bad_parameters"
