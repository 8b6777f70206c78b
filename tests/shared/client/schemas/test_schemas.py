"""`CheckedSchema`: faults of values, and schemas that would take too long."""

import sys
from contextlib import suppress
from typing import Any

import pytest

from shared.client.schemas.schema_cost import UnusableSchema
from shared.client.schemas.schemas import MAX_VALUES, CheckedSchema
from tests.shared.client.schemas.test_schema_cost import chain

ROWS = {"properties": {"rows": {"items": {"properties": {"price": {"type": "number"}}, "required": ["price"]}}}}
EMAIL = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$"
"""The pattern that zod writes into schemas."""


BOTH = {"properties": {"text": {"pattern": "^(?!x)(?:(a|aa)+(?=b)b|a+)$"}, "rows": {"items": {"type": "integer"}}}}
"""A large value with a pattern that exceeds its limit, so the result is unknown."""


def find_error(schema: dict[str, Any], value: object) -> tuple[str, str] | None:
    found = CheckedSchema(schema).find_error(value)
    return None if found is None else (".".join(found[0]), found[1])


FAULTS: list[tuple[dict[str, Any], object, str | None]] = [
    (ROWS, {"rows": [{"price": 1}]}, None),
    (ROWS, {"rows": [{"price": 1}, {"price": "2"}]}, "rows.1.price"),
    (ROWS, {"rows": [{}]}, "rows.0"),
    ({"type": "integer"}, 1.0, None),
    ({"type": "integer"}, True, ""),
    ({"pattern": "^a+$"}, "aaa", None),
    ({"pattern": "^a+$"}, "ab", ""),
    ({"pattern": EMAIL}, "ada@example.org", None),
    ({"pattern": EMAIL}, "ada..l@example.org", ""),
    ({"pattern": "^.{1,100}$"}, "ab", None),
    ({"format": "email"}, "no address", None),
    ({"maxLength": 999_999}, "x" * 1_000_000, ""),
    ({"prefixItems": [{"type": "string"}], "items": False}, ["a", 1], "1"),
    ({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}, [1], "0"),
    ({"$defs": {"a": {"type": "string"}}, "items": {"$ref": "#/$defs/a"}}, ["b", 3], "1"),
    ({"unevaluatedProperties": False, "allOf": [{"properties": {"a": {}}}]}, {"b": 1}, ""),
]


def test_the_path_of_the_first_fault_is_returned() -> None:
    found = [find_error(schema, value) for schema, value, _ in FAULTS]
    assert [one and one[0] for one in found] == [path for *_, path in FAULTS]


def test_a_fault_message_is_shortened() -> None:
    found = find_error({"type": "integer"}, "x" * 1_000)
    assert found is not None
    assert len(found[1]) == 201


def test_a_value_that_is_not_json_violates_every_schema() -> None:
    found = find_error({"type": "object"}, {1: 2})
    assert found is not None
    assert "key must be str" in found[1]


def test_a_form_checks_formats_and_hides_values() -> None:
    form = CheckedSchema({"properties": {"mail": {"type": "string", "format": "email"}}}, form=True)
    assert form.find_error({"mail": "ada@example.org"}) is None
    assert form.find_error({"mail": "s3cret"}) == (["mail"], 'the value is not a "email"')


def deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(levels):
        schema = {"properties": {"a": schema}}
    return schema


UNUSABLE: list[dict[str, Any]] = [
    {"type": "strin"},
    {"minLength": "x"},
    {"pattern": "("},
    {"pattern": "(((a{1,100}){1,100}){1,100}){1,100}"},
    {"$schema": "http://a.example/dialect"},
    {"$ref": "file:///etc/hostname"},
    *({"patternProperties": patterns} for patterns in (5, None, [{}], "a")),
    *(deep(levels) for levels in (300, 3_000)),
]


def test_unusable_schemas_are_refused() -> None:
    usable = []
    for schema in UNUSABLE:
        with suppress(UnusableSchema):
            usable.append(CheckedSchema(schema))
    assert not usable


def holding_itself() -> list[Any]:
    value: list[Any] = []
    value += [value, value]
    return value


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (chain("anyOf", 30), "x"),
        ({"allOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}]}, deep(60)),
        ({"items": {"enum": list(range(100_000))}}, [1] * 1_000),
        ({"pattern": "[ab]*a[ab]{400}c"}, "abbaa" * 20_000),
        ({"pattern": "(?=(a+)+$)b"}, "a" * 5_000),
        ({"pattern": "^(a|aa)+(?!c)$"}, "a" * 500 + "b"),
        ({"patternProperties": {"(?=(a+)+$)b": {}}}, {"a" * 5_000: 1}),
        (BOTH, {"text": "a" * 60, "rows": [1] * 99_000}),
        ({}, holding_itself()),
        ({}, [1] * MAX_VALUES),
        ({}, [[1] * 3_000] * 3_000),
    ],
)
def test_a_check_that_would_take_too_long_is_refused(schema: dict[str, Any], value: object) -> None:
    if schema.get("allOf"):
        value = [value]
        for _ in range(40):
            value = [value]
    with pytest.raises(UnusableSchema):
        CheckedSchema(schema).find_error(value)


def test_a_large_value_is_checked_without_the_path_of_its_fault() -> None:
    checked = CheckedSchema({"items": {"type": "integer"}})
    rows: list[Any] = [1] * (MAX_VALUES - 1)
    assert checked.find_error(rows) is None
    rows[7] = "x"
    assert checked.find_error(rows) == ([], "it violates the schema")


def test_a_missing_extra_is_named_in_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    with pytest.raises(UnusableSchema, match="extra `client`"):
        CheckedSchema({})
