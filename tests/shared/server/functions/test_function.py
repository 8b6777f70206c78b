"""A typed function: checked arguments, schemas, and errors at declaration."""

import datetime as dt
import re
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from typing_extensions import Doc

from shared import Context
from shared.errors import DeclarationError, InvalidArguments
from shared.server.functions.function import Function, output_schema
from shared.steps import complete


class Point(BaseModel):
    """A place."""

    x: int
    y: int = 0


class Node(BaseModel):
    name: str
    inner: list["Node"] = []


def read(function):
    return Function(function, "tool", Context)


async def many(
    ctx: Context[None],
    path: Path,
    count: Annotated[int, Field(ge=1, description="How many")] = 5,
    day: dt.date | None = None,
    kind: Literal["a", "b"] = "a",
    point: Point | None = None,
) -> str:
    """Does a lot."""
    return f"{path} {count} {day} {kind} {point}"


def test_the_context_is_not_an_argument():
    function = read(many)
    assert function.bind({"path": "a"}, "here")["ctx"] == "here"
    assert function.names() == ("path", "count", "day", "kind", "point")


@pytest.mark.parametrize(
    "arguments", [{"path": "a", "count": 2}, {"path": "a", "count": "2"}, {"path": 1}, {"path": "a", "b": 1}]
)
def test_binding_in_steps_equals_binding_at_once(arguments):
    function = read(many)

    def outcome(bind):
        try:
            return bind()
        except InvalidArguments as error:
            return str(error)

    steps = function.bind_steps(arguments, "here")
    assert next(steps) is None
    at_once = outcome(lambda: function.bind(arguments, "here"))
    assert outcome(lambda: complete(steps)) == at_once


def test_the_schema_is_a_valid_object_schema():
    schema = read(many).schema
    Draft202012Validator.check_schema(schema)
    assert (schema["type"], schema["required"]) == ("object", ["path"])


def test_the_schema_omits_keywords_that_some_hosts_refuse():
    class Strict(BaseModel):
        model_config = ConfigDict(extra="forbid")

        name: str

    async def nested(inner: list[Strict]) -> None: ...

    assert "additionalProperties" not in str(read(nested).schema)


def test_the_schema_reflects_the_declaration():
    properties = read(many).schema["properties"]
    assert properties["count"] == {"type": "integer", "minimum": 1, "default": 5, "description": "How many"}
    assert properties["kind"] == {"type": "string", "enum": ["a", "b"], "default": "a"}
    assert properties["day"] == {"type": "string", "format": "date"}  # it is left out, and not null


def test_the_schema_has_no_generated_titles_or_model_docstrings():
    schema = read(many).schema
    assert "title" not in schema
    assert schema["properties"]["point"].keys() == {"properties", "required", "type"}
    assert "$defs" not in schema


def test_empty_defaults_are_omitted():
    async def search(word: str = "", deep: bool = False, wide: bool = True, names: list[str] = [], count: int = 0):  # noqa: B006
        """Search."""

    properties = read(search).schema["properties"]
    assert {name: one["default"] for name, one in properties.items() if "default" in one} == {
        "wide": True,
        "count": 0,
    }


def test_arguments_are_converted_to_the_declared_types():
    bound = read(many).bind({"path": "/a", "day": "2025-01-31", "point": {"x": 1}}, "here")
    made = {"path": Path("/a"), "count": 5, "day": dt.date(2025, 1, 31), "kind": "a", "point": Point(x=1)}
    assert bound == {"ctx": "here", **made}


def test_a_function_without_parameters():
    async def nothing() -> None: ...

    assert read(nothing).schema == {"type": "object", "properties": {}}
    assert "unknown argument 'x' (it takes none)" in fault({"x": 1}, nothing)


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({}, "path: Field required"),
    ({"path": 5}, "path: "),
    ({"path": "a", "count": "five"}, "count: Input should be a valid integer"),
    ({"path": "a", "count": 1.5}, "count: "),
    ({"path": "a", "count": True}, "count: Input should be a valid integer"),
    ({"path": "a", "count": 0}, "count: Input should be greater than or equal to 1"),
    ({"path": "a", "day": "yesterday"}, "day: "),
    ({"path": "a", "kind": "c"}, "kind: Input should be 'a' or 'b'"),
    ({"path": "a", "point": {"x": "one"}}, "point.x: Input should be a valid integer"),
    ({"path": "a", "cuont": 5}, "unknown argument 'cuont'; did you mean 'count'?"),
    ({"path": "a", "zzz": 5}, "unknown argument 'zzz' (available: path, count, day, kind, point)"),
    ({"path": "a", "ctx": 5}, "unknown argument 'ctx'"),
]


def fault(arguments, function=many):
    with pytest.raises(InvalidArguments) as caught:
        read(function).bind(arguments)
    return str(caught.value)


def test_arguments_are_checked_strictly():
    told = [(arguments, text, fault(arguments)) for arguments, text in FAULTS]
    assert [row for row in told if row[1] not in row[2]] == []


def test_all_errors_are_named_at_once_without_values():
    told = fault({"count": "hunter2"})
    assert re.search("path: .*; count: ", told)
    assert "hunter2" not in told


def test_an_argument_may_have_the_name_of_a_models_method():
    for name in ("schema", "json", "copy", "model_name", "validate", "self_"):
        namespace: dict[str, Any] = {}
        exec(f"async def tool({name}: int = 1) -> None: ...", namespace)
        assert read(namespace["tool"]).bind({name: 2}) == {name: 2}


def test_strings_are_converted_where_all_arguments_are_strings():
    bound = read(many).bind_text({"path": "a", "count": "7", "day": "2025-01-31"})
    assert (bound["count"], bound["day"]) == (7, dt.date(2025, 1, 31))
    with pytest.raises(InvalidArguments, match="count: "):
        read(many).bind_text({"path": "a", "count": "seven"})


def test_an_argument_may_have_an_alias():
    async def find(
        user_id: Annotated[int, Field(alias="userId", description="Who")], class_: str = Field("", alias="class")
    ) -> None: ...

    function = read(find)
    assert function.names() == tuple(function.schema["properties"]) == ("userId", "class")
    assert (function.is_required("userId"), function.description("userId")) == (True, "Who")
    assert function.bind({"userId": 1, "class": None}) == {"user_id": 1, "class_": ""}


def test_a_string_in_an_annotation_is_the_description():
    async def find(
        a: Annotated[int, "How many"],
        b: Annotated[int, Doc("How long")],
        c: Annotated[int, "x", Field(description="y")],
    ) -> None: ...

    properties = read(find).schema["properties"]
    assert [properties[name]["description"] for name in "abc"] == ["How many", "How long", "y"]


def test_an_iterable_is_validated_before_the_function_runs():
    async def add(numbers: Iterable[int], names: Annotated[Iterable[str] | None, "who"] = None) -> None: ...

    assert read(add).bind({"numbers": "[1]", "names": ["a"]}) == {"numbers": [1], "names": ["a"]}
    assert fault({"numbers": ["x"]}, add).startswith("numbers.0: Input should be a valid integer")


async def yielding() -> AsyncIterator[int]:
    yield 1


async def untyped(a) -> None: ...


async def starred(*a: int) -> None: ...


async def keywords(**a: int) -> None: ...


async def positional(a: int, /) -> None: ...


async def unknown(a: "Missing") -> None: ...  # noqa: F821


async def private(_a: int) -> None: ...


async def configured(model_config: int) -> None: ...


async def dumped(model_dump: int) -> None: ...


def test_an_impossible_declaration_is_refused_by_name():
    for function in (yielding, untyped, starred, keywords, positional, unknown, private, configured, dumped):
        with pytest.raises(DeclarationError, match=f"tool '{function.__name__}'"):
            _ = read(function).schema


def test_the_schema_of_a_recursive_type_has_an_object_at_its_root():
    schema = output_schema(TypeAdapter(Node))
    Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert Draft202012Validator(schema).is_valid({"name": "a", "inner": [{"name": "b", "inner": []}]})
    assert not Draft202012Validator(schema).is_valid({"name": "a", "inner": [{"inner": []}]})


def test_the_output_schema_permits_null():
    class Maybe(BaseModel):
        plain: int | None
        several: list[int] | None

    properties = output_schema(TypeAdapter(Maybe))["properties"]
    assert properties["plain"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    assert properties["several"]["anyOf"][1] == {"type": "null"}


def test_the_output_schema_permits_any_value():
    class Whatever(BaseModel):
        described: Annotated[Any, Field(description="what it is")]
        one: Any
        many: list[Any]
        named: dict[str, Any]

    properties = output_schema(TypeAdapter(Whatever))["properties"]
    kinds = {one["type"] for one in properties["one"]["anyOf"]}
    assert kinds == {"string", "number", "boolean", "object", "array", "null"}
    assert properties["many"] == {"type": "array", "items": properties["one"]}
    assert properties["named"] == {"type": "object", "additionalProperties": True}
