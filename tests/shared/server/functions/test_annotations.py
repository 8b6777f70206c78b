"""The types that an author declares: data, content, or neither."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, NamedTuple, NewType

import pytest
from pydantic import AfterValidator, BaseModel, BeforeValidator
from typing_extensions import TypeAliasType, TypedDict

from shared import CallToolResult, ImageContent, TextContent
from shared.server.functions.annotations import is_content, is_data, is_one_of, is_sendable, remove_validators


class Point(BaseModel):
    x: int


@dataclass
class Pair:
    left: int


class Row(TypedDict):
    name: str


class Place(NamedTuple):
    line: int


class Color(Enum):
    RED = "red"


Number = NewType("Number", int)
Name = NewType("Name", str)
Maybe = TypeAliasType("Maybe", str | None)
Numbers = TypeAliasType("Numbers", list[int])


@pytest.mark.parametrize(
    "hint",
    [
        *(
            Point,
            Pair,
            Row,
            Place,
            dict,
            dict[str, int],
            dict[str, Any],
            list[str],
            list[Point],
            tuple[int, ...],
            int,
        ),
        *(float, bool, Point | None, Color, date, Decimal, Path, Number, Numbers, Sequence[int], Mapping[str, int]),
        *(deque[int], frozenset[int]),
    ],
)
def test_data_types(hint: Any) -> None:
    assert is_data(hint)
    assert is_sendable(hint)


@pytest.mark.parametrize(
    "hint",
    [
        *(str, NoneType, Any, str | None, TextContent, CallToolResult, ImageContent | str, list[ImageContent]),
        *(list[TextContent | ImageContent], list[Any], Name, Maybe),
    ],
)
def test_content_types(hint: Any) -> None:
    assert not is_data(hint)
    assert is_sendable(hint)


@pytest.mark.parametrize("hint", [bytes, bytearray, memoryview, object, str | bytes])
def test_types_that_can_not_be_sent(hint: Any) -> None:
    assert not is_sendable(hint)


def test_values_of_types_with_names_are_content() -> None:
    assert is_content("a", Name)
    assert is_content(None, Maybe | int)
    assert not is_content(5, Maybe)


def test_validators_are_removed_at_any_depth() -> None:
    checked = Annotated[int, AfterValidator(abs), "a number"]
    assert remove_validators(dict[str, list[checked | None]]) == dict[str, list[Annotated[int, "a number"] | None]]
    assert remove_validators(Annotated[list[str], BeforeValidator(str.split)]) == list[str]
    assert remove_validators(hint := Annotated[list[int], "numbers"]) is hint


class Recursive:
    """The type of the statement `type Recursive = str | list[Recursive]`, new in Python 3.12."""

    def __call__(self) -> None:
        """Types can be called."""

    @property
    def __value__(self) -> Any:
        return str | list[self]  # type: ignore[valid-type]


def test_a_type_may_contain_itself() -> None:
    assert is_one_of(Recursive(), (str,))
    assert not is_one_of(Recursive(), (int,))
