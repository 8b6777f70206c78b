"""A loss is seen, whatever was lost."""

from typing import Any

import pytest

from tests.checks.definitions.dialects import DIALECTS, losses

Json = dict[str, Any]

TEXT: Json = {"type": "string"}
INNER: Json = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}, "required": ["a"]}
LIST: Json = {"type": "array", "items": INNER}
EITHER: Json = {"anyOf": [TEXT, {"type": "number"}]}


def arguments(one: Json, **more: Any) -> Json:
    return {"type": "object", "properties": {"one": one}, **more}


@pytest.mark.parametrize(
    ("schema", "made", "loss"),
    [
        (arguments(INNER), {"type": "object", "properties": {}}, ".one: is gone"),
        (arguments(INNER), arguments({"type": "object"}), ".one.a: is gone"),
        (arguments(LIST), arguments({"type": "array"}), ".one[].a: is gone"),
        (arguments(EITHER), arguments(TEXT), ".one: 2 alternatives are 0"),
        (arguments(EITHER), arguments({"anyOf": [TEXT, {}]}), ".one|1: type was 'number' and is None"),
        (arguments({**TEXT, "enum": ["a"]}), arguments(TEXT), ".one: enum was ['a'] and is None"),
        (arguments({**TEXT, "minLength": 1}), arguments(TEXT), ".one: minLength was 1 and is None"),
        (arguments(TEXT, required=["one"]), arguments(TEXT), ".one: is no longer required"),
        (arguments({**TEXT, "not": {}}), arguments({**TEXT, "not": {}}), ".one: no table has not"),
    ],
)
def test_what_is_lost_is_told(schema: Json, made: Json, loss: str) -> None:
    assert loss in losses(schema, made, DIALECTS["openai"])


@pytest.mark.parametrize("free", [{}, {"type": "object"}, {"type": "array"}, {"type": ["string", "null"]}])
def test_what_may_be_anything_is_lost_from_the_beginning(free: Json) -> None:
    assert ".one: may be anything, which nobody can convey" in losses(
        arguments(free), arguments(free), DIALECTS["openai"]
    )


def test_what_is_said_in_another_way_is_not_lost() -> None:
    schema = arguments({"$ref": "#/$defs/Inner"}, **{"$defs": {"Inner": INNER}})
    inner = {"type": "OBJECT", "properties": {"a": {"type": "INTEGER", "minimum": 1.0}}, "required": ["a"]}
    assert losses(schema, {"type": "OBJECT", "properties": {"one": inner}}, DIALECTS["adk"]) == []
