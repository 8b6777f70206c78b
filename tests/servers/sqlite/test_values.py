"""Values as JSON."""

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servers.common.sql.errors import SqlError
from servers.common.sql.texts import format_row
from servers.sqlite.values import decode_value, encode_cells, encode_row

INTEGERS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.one_of(st.none(), INTEGERS, st.floats(allow_nan=False), TEXTS, st.binary())


def encode_one(value: Any, max_bytes: int = 1_000) -> Any:
    return encode_cells([value], max_bytes)[0]


@settings(max_examples=50)
@given(st.lists(VALUES, min_size=1))
def test_every_value_round_trips_through_a_line_of_json(values: list[Any]) -> None:
    line = format_row(encode_cells(values, 100_000))
    assert not set(line) & {"\n", "\r"}
    back = [decode_value(cell) for cell in json.loads(line)]
    assert back == values
    assert [type(value) for value in back] == [type(value) for value in values]


@settings(max_examples=50)
@given(st.lists(st.one_of(VALUES, st.text()), min_size=1), st.integers(16, 50))
def test_encode_row_encodes_each_value(values: list[Any], max_bytes: int) -> None:
    assert list(encode_row(values, max_bytes)) == [encode_one(value, max_bytes) for value in values]


def test_values_outside_json_become_objects() -> None:
    for plain in (2**53, -(2**53), 0, 1.5, "text", None):
        assert encode_one(plain) == plain
    broken = b"a\xff".decode("utf-8", "surrogateescape")
    assert encode_one(2**53 + 1) == {"type": "integer", "value": "9007199254740993"}
    assert encode_one(-math.inf) == {"type": "real", "value": "-Infinity"}
    assert encode_one(b"\x00\xff") == {"type": "blob", "bytes": 2, "base64": "AP8="}
    assert encode_one(broken) == {"type": "text", "bytes": 2, "base64": "Yf8="}


def test_long_values_are_cut_and_texts_between_characters() -> None:
    assert encode_one("äöü", 3) == {"type": "text", "bytes": 6, "value": "ä", "truncated": True}
    assert encode_one(b"123456", 3) == {"type": "blob", "bytes": 6, "base64": "MTIz", "truncated": True}


def test_a_list_as_a_parameter_is_refused_with_advice() -> None:
    with pytest.raises(SqlError, match=r"does not accept lists.*IN \(\?, \?\).*json_each"):
        decode_value([1, 2])


def test_an_invalid_parameter_is_refused() -> None:
    for value in (
        [1],
        {},
        {"type": "blob", "base64": "?"},
        {"type": "blob", "base64": "YQ==", "truncated": True},
        {"type": "integer", "value": "12x"},
        {"type": "text", "base64": "/w=="},
    ):
        with pytest.raises(SqlError) as raised:
            decode_value(value)
        assert raised.value.code == "bad_parameters"
