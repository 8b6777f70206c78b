"""The digest of arguments: that of their JSON in ASCII with sorted names."""

import json
from hashlib import sha256
from typing import Any

import pytest

from shared.telemetry.audit_digest import digest, digest_steps
from tests.steps import counted


def digest_of(value: Any) -> str:
    return sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@pytest.mark.parametrize("text", ["plain", "\u00e9", "\u2028", "\x1b[2J", "\x7f", "\x9b2J"])
def test_a_digest_equals_that_of_sorted_ascii_json(text: str) -> None:
    for value in ({"b": text, "a": [1, None], "nested": {"y": 1, "x": text}}, {"b": text, "a": True}, [text], {}):
        assert digest(value) == digest_of(value)


@pytest.mark.parametrize(
    "arguments",
    [{f"{number}": [number, [], {}] for number in range(10_000)}, {"text": '\U0001f600"\\\n' * 300_000}],
    ids=["values", "text"],
)
def test_the_digest_of_large_arguments_is_computed_in_steps(arguments: dict[str, Any]) -> None:
    pauses, result = counted(digest_steps(arguments))
    assert result == digest_of(arguments)
    assert pauses > 5
