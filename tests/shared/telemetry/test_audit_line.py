"""A line of the audit log: JSON in ASCII for any content."""

import json

import pytest

from shared.telemetry import audit_line
from shared.telemetry.audit_line import line_of, request_fields


@pytest.mark.parametrize("text", ["plain", "\u00e9", "\u2028", "\x1b[2J", "\x7f", "\x9b2J", "\ud800\n"])
def test_a_line_equals_the_ascii_json_of_python(text: str) -> None:
    line = line_of({"text": text, "number": 1.5})
    assert line.endswith(json.dumps({"text": text, "number": 1.5}, separators=(",", ":"))[1:] + "\n")


def test_any_value_becomes_a_line() -> None:
    line = line_of({"number": float("nan"), "most": [float("inf")], "other": object()})
    assert ("NaN" in line, "Infinity" in line, line.count("\n")) == (True, True, 1)
    json.loads(line, parse_constant=pytest.fail)


def test_long_texts_are_cached_truncated() -> None:
    texts = [{"method": end * 10_000, "raw": {"name": end * 10_000}} for end in ("a", "a" * 2)]
    audit_line._common_fields.cache_clear()
    for text in texts:
        request_fields("notes", peer=None, principal=None, **text)
    assert audit_line._common_fields.cache_info().currsize == 1
