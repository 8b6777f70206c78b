"""Rows as CSV, JSON and JSON Lines."""

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

import pytest

from servers.sqlite.exports import FORMATS, FormatName
from servers.sqlite.query.values import decode_value

INVALID = b"\xff".decode("utf-8", "surrogateescape")
VALUES = [None, "", "a", 'a "b", c', "x\r\ny", "é", INVALID, 2**63 - 1, -0.1, float("inf"), b"\x00\xff", b"", "NULL"]


def written(format_: FormatName, names: Sequence[str], *batches: Any) -> bytes:
    return b"".join(FORMATS[format_].write(names, batches))


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (None, b""),
        ("", b'""'),
        ("plain", b"plain"),
        ('a "b", c', b'"a ""b"", c"'),
        ("x\r\ny", b'"x\r\ny"'),
        (INVALID, b"\xff"),
        (2**63 - 1, b"9223372036854775807"),
        (0.1, b"0.1"),
        (float("-inf"), b"-Infinity"),
        (b"\x00\xff", b"AP8="),
        (b"", b'""'),
    ],
)
def test_a_value_in_csv(value: Any, field: bytes) -> None:
    assert written("csv", ["a", "b"], [(value, 1)]) == b"a,b\r\n" + field + b",1\r\n"


def test_csv_is_read_by_the_reader_of_the_standard_library() -> None:
    texts = [value for value in VALUES if isinstance(value, str) and value != INVALID]
    data = written("csv", texts, [texts, texts], [texts]).decode()
    assert list(csv.reader(io.StringIO(data, newline=""))) == [texts] * 4


def test_json_holds_every_value_without_loss() -> None:
    made = json.loads(written("json", ["a"], [(value,) for value in VALUES]))
    assert made["columns"] == ["a"]
    plain = [(sent, value) for (sent,), value in zip(made["rows"], VALUES, strict=True) if value != INVALID]
    assert [decode_value(sent) for sent, _ in plain] == [value for _, value in plain]
    assert made["rows"][VALUES.index(INVALID)] == [{"type": "text", "bytes": 1, "base64": "/w=="}]


def test_json_lines_have_the_names_first_and_a_row_on_each_line() -> None:
    lines = written("jsonl", ["a", "a"], [(1, "x\ny")], [(2, None)]).splitlines()
    assert [json.loads(line) for line in lines] == [["a", "a"], [1, "x\ny"], [2, None]]


def test_no_rows_are_a_whole_file_in_each_format() -> None:
    assert written("csv", ["a"]) == b"a\r\n"
    assert json.loads(written("json", ["a"])) == {"columns": ["a"], "rows": []}
    assert written("jsonl", ["a"]) == b'["a"]\n'


def test_batches_are_joined_to_one_list() -> None:
    assert json.loads(written("json", ["a"], [(1,), (2,)], [(3,)]))["rows"] == [[1], [2], [3]]
