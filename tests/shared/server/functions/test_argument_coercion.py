"""Arguments in an equivalent form: whole numbers with a fraction of zero, values as JSON strings, null or "" for
omitted arguments, and arguments that hosts add."""

from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from shared import Context
from shared.errors import InvalidArguments
from shared.server.functions.function import Function


class Line(BaseModel):
    text: str
    count: int = 1


class Row(TypedDict):
    name: str


@dataclass
class Pair:
    left: int


class Place(NamedTuple):
    line: int
    column: int = 0


class Level(Enum):
    LOW = 1
    HIGH = 2


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str]


async def take(
    number: Annotated[int, Field(ge=0, le=9)] = 0,
    maybe: int | None = None,
    real: float = 0,
    flag: bool = False,
    names: list[str] | None = None,
    several: list[list[int]] | None = None,
    lines: list[Line] | None = None,
    line: Line | None = None,
    row: Row | None = None,
    pair: Pair | None = None,
    table: dict[str, int] | None = None,
    either: str | list[str] = "",
    other: int | list[int] = 0,
    unique: set[str] | None = None,
    fixed: tuple[int, str] | None = None,
    pet: Annotated[Cat | Dog, Field(discriminator="kind")] | None = None,
    anything: Any = None,
    place: Place | None = None,
    last: deque[int] | None = None,
    level: Level = Level.LOW,
    size: Literal[1, 2] = 1,
    mixed: Literal["a", 1, True] = "a",
) -> None: ...


TAKE = Function(take, "tool", Context)


@pytest.mark.parametrize(
    ("name", "sent", "taken"),
    [
        ("number", 1.0, 1),
        ("number", -0.0, 0),
        ("maybe", 2.0, 2),
        ("maybe", 1e20, 10**20),
        ("names", '["a"]', ["a"]),
        ("names", " [] ", []),
        ("several", "[[1.0], []]", [[1], []]),
        ("several", '["[1]"]', [[1]]),
        ("several", [[1.0, 2]], [[1, 2]]),
        ("table", '{"a": 1.0}', {"a": 1}),
        ("table", {"a": 1.0}, {"a": 1}),
        ("row", '{"name": "a"}', {"name": "a"}),
        ("pair", '{"left": 1}', Pair(1)),
        ("line", '{"text": "a"}', Line(text="a")),
        ("lines", '[{"text": "[1]", "count": 2.0}]', [Line(text="[1]", count=2)]),
        ("lines", ['{"text": "a"}'], [Line(text="a")]),
        ("other", "[1.0]", [1]),
        ("other", 3.0, 3),
        ("unique", '["a"]', {"a"}),
        ("fixed", '[1.0, "a"]', (1, "a")),
        ("number", "1", 1),
        ("maybe", "1.0", 1),
        ("real", "0.5", 0.5),
        ("flag", "false", False),
        ("several", [["1"]], [[1]]),
        ("line", '{"text": "a", "count": "1"}', Line(text="a", count=1)),
        ("place", "[1]", Place(1)),
        ("place", '{"line": 1}', Place(1)),
        ("last", "[1.0]", deque([1])),
        ("level", "2", Level.HIGH),
        ("size", "2", 2),
        ("size", 2.0, 2),
        ("mixed", "1", 1),
        ("mixed", "true", True),
        ("maybe", "null", None),
        ("names", "null", None),
        ("number", None, 0),
        ("flag", None, False),
        ("number", "", 0),
        ("names", "", None),
        ("size", "", 1),
        ("either", None, ""),
        ("pet", {"kind": "cat", "lives": 9.0}, Cat(kind="cat", lives=9)),
        ("pet", {"kind": "dog", "tricks": '["sit"]'}, Dog(kind="dog", tricks=["sit"])),
    ],
)
def test_equivalent_forms_of_a_value_are_accepted(name, sent, taken):
    assert TAKE.bind({name: sent})[name] == taken
    assert type(TAKE.bind({name: sent})[name]) is type(taken)


@pytest.mark.parametrize(
    ("name", "sent"), [("either", '["a"]'), ("either", "1.0"), ("anything", "[1]"), ("anything", 1.5), ("real", 1.0)]
)
def test_valid_values_are_unchanged(name, sent):
    assert TAKE.bind({name: sent})[name] == sent
    assert type(TAKE.bind({name: sent})[name]) is type(sent)


@pytest.mark.parametrize(
    ("name", "sent", "message"),
    [
        ("number", 1.5, "number: Input should be a valid integer"),
        ("number", "one", "number: Input should be a valid integer"),
        ("number", "1.5", "number: Input should be a valid integer"),
        ("number", "10", "number: Input should be less than or equal to 9"),
        ("number", "true", "number: Input should be a valid integer"),
        ("number", True, "number: Input should be a valid integer"),
        ("number", 10.0, "number: Input should be less than or equal to 9"),
        ("size", "3", "size: Input should be 1 or 2"),
        ("size", "null", "size: Input should be 1 or 2"),
        ("mixed", "null", "mixed: Input should be 'a', 1 or True"),
        ("level", "high", "level: Input should be 1 or 2"),
        ("flag", 1.0, "flag: Input should be a valid boolean"),
        ("flag", "yes", "flag: Input should be a valid boolean"),
        ("flag", "1", "flag: Input should be a valid boolean"),
        ("real", "NaN", "real: Input should be a valid number"),
        ("real", "1e999", "real: Input should be a valid number"),
        ("names", "a", "names: Input should be a valid array"),
        ("names", '{"a": 1}', "names: Input should be a valid array"),
        ("names", '["a"', "names: Input should be a valid array"),
        ("names", "[1]", "names.0: Input should be a valid string"),
        ("several", "[[NaN]]", "several: Input should be a valid array"),
        ("table", '["a"]', "table: Input should be an object"),
        ("table", '{"a": 1.5}', "table.a: Input should be a valid integer"),
        ("line", '{"text": "a", "count": "one"}', "line.count: Input should be a valid integer"),
        ("line", {"text": None}, "line.text: Input should be a valid string"),
        ("task", "a", "unknown argument 'task' ("),
    ],
)
def test_values_with_another_meaning_are_refused(name, sent, message):
    with pytest.raises(InvalidArguments) as refused:
        TAKE.bind({name: sent})
    assert str(refused.value).startswith(message)


def test_the_string_null_is_null_for_nullable_arguments():
    async def need(count: int | None, names: list[None]) -> None: ...

    assert Function(need, "tool", Context).bind({"count": "null", "names": ["null"]}) == {
        "count": None,
        "names": [None],
    }


def test_null_is_refused_for_required_arguments():
    async def need(count: int) -> None: ...

    with pytest.raises(InvalidArguments, match="count: Input should be a valid integer"):
        Function(need, "tool", Context).bind({"count": None})


@pytest.mark.parametrize("name", ["wait_for_previous", "task_progress", "random_string"])
def test_arguments_added_by_hosts_are_ignored_unless_declared(name):
    async def nothing() -> None: ...

    async def all_of_them(wait_for_previous: str = "", task_progress: str = "", random_string: str = "") -> None: ...

    assert Function(nothing, "tool", Context).bind({name: "x"}) == {}
    assert TAKE.bind({name: True, "number": 2})["number"] == 2
    assert Function(all_of_them, "tool", Context).bind({name: "x"})[name] == "x"


def test_the_arguments_of_the_caller_are_not_modified():
    sent = {"number": 1.0, "lines": '[{"text": "a"}]', "several": [[1.0]]}
    TAKE.bind(sent)
    assert sent == {"number": 1.0, "lines": '[{"text": "a"}]', "several": [[1.0]]}
    assert type(sent["number"]) is float


def test_nested_json_strings_are_decoded_to_a_limited_depth():
    import json

    inner = [[1]]
    for _ in range(8):
        inner = json.dumps([inner])
    with pytest.raises(InvalidArguments):
        TAKE.bind({"several": inner})


def test_many_values_are_coerced():
    many = {"several": [[1.0] * 50_000]}
    assert len(TAKE.bind(many)["several"][0]) == 50_000
