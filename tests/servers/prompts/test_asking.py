"""Missing arguments as a form, and what was filled in as texts."""

from typing import Any

import pytest

from servers.prompts.arguments import build_form, format_filled
from servers.prompts.format.definitions import Argument


@pytest.mark.parametrize(
    ("argument", "field"),
    [
        (Argument("a"), {"type": "string", "minLength": 1}),
        (Argument("a", "number"), {"type": "number"}),
        (Argument("a", "boolean"), {"type": "boolean"}),
        (Argument("a", "url", title="A"), {"type": "string", "format": "uri", "title": "A"}),
        (Argument("a", "enum", enum=("x", "y")), {"type": "string", "enum": ["x", "y"]}),
        (
            Argument("a", "file", description="What to read."),
            {"type": "string", "minLength": 1, "description": "What to read. The path of a file."},
        ),
        (
            Argument("a", "list", examples=("1", "2", "3", "4")),
            {
                "type": "string",
                "minLength": 1,
                "description": "One a line, or with commas between them. For example: 1, 2, 3",
            },
        ),
    ],
)
def test_a_field_has_the_type_of_its_argument(argument: Argument, field: dict[str, Any]) -> None:
    assert build_form([argument]) == {"type": "object", "properties": {"a": field}, "required": ["a"]}


def test_what_is_filled_in_becomes_text() -> None:
    arguments = [Argument(name) for name in "abcdef"]
    filled = {"a": "x", "b": 7, "c": 1.5, "d": True, "e": None, "more": "y"}
    assert format_filled(filled, arguments) == {"a": "x", "b": "7", "c": "1.5", "d": "true"}


def test_several_values_become_a_list_in_json() -> None:
    assert format_filled({"a": ["x", "y"]}, [Argument("a", "list")]) == {"a": '["x", "y"]'}
