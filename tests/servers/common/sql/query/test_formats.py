"""Rows as CSV, JSON and JSON Lines."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from servers.common.sql.query.formats import ExportFile, ExportRequest, FormatName
from servers.sqlite.query.exporting import Codec
from servers.sqlite.values import decode_value

Written = Callable[..., bytes]
INVALID = b"\xff".decode("utf-8", "surrogateescape")
VALUES = [None, "", "a", 'a "b", c', "x\r\ny", "é", INVALID, 2**63 - 1, -0.1, float("inf"), b"\x00\xff", b"", "NULL"]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    def write(format_: FormatName, names: Sequence[str], *batches: Any) -> bytes:
        path = tmp_path / f"{len([*tmp_path.iterdir()])}.{format_}"
        with ExportFile(ExportRequest(path, format_, 1_000_000), Codec()) as file:
            file.begin(names)
            for rows in batches:
                file.add([tuple(row) for row in rows])
        return path.read_bytes()

    return write


FIELDS = [
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
]


def test_each_value_is_written_to_csv(written: Written) -> None:
    results = [(value, written("csv", ["a", "b"], [(value, 1)])) for value, _ in FIELDS]
    assert results == [(value, b"a,b\r\n" + field + b",1\r\n") for value, field in FIELDS]


def test_the_csv_module_reads_the_written_csv(written: Written) -> None:
    texts = [value for value in VALUES if isinstance(value, str) and value != INVALID]
    data = written("csv", texts, [texts, texts], [texts]).decode()
    assert list(csv.reader(io.StringIO(data, newline=""))) == [texts] * 4


def test_json_preserves_every_value(written: Written) -> None:
    made = json.loads(written("json", ["a"], [(value,) for value in VALUES]))
    assert made["columns"] == ["a"]
    plain = [(sent, value) for (sent,), value in zip(made["rows"], VALUES, strict=True) if value != INVALID]
    assert [decode_value(sent) for sent, _ in plain] == [value for _, value in plain]
    assert made["rows"][VALUES.index(INVALID)] == [{"type": "text", "bytes": 1, "base64": "/w=="}]


def test_json_lines_have_the_column_names_first_and_a_row_per_line(written: Written) -> None:
    lines = written("jsonl", ["a", "a"], [(1, "x\ny")], [(2, None)]).splitlines()
    assert [json.loads(line) for line in lines] == [["a", "a"], [1, "x\ny"], [2, None]]


def test_a_result_without_rows_is_valid_in_each_format(written: Written) -> None:
    assert written("csv", ["a"]) == b"a\r\n"
    assert json.loads(written("json", ["a"])) == {"columns": ["a"], "rows": []}
    assert written("jsonl", ["a"]) == b'["a"]\n'


def test_batches_are_joined_to_one_json_list(written: Written) -> None:
    assert json.loads(written("json", ["a"], [(1,), (2,)], [(3,)]))["rows"] == [[1], [2], [3]]
