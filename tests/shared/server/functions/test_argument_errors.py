"""Errors of arguments, with the names of the object that contains them."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from shared import Context
from shared.errors import InvalidArguments
from shared.server.functions.function import Function


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Edit(Strict):
    old: str
    new: str = ""


class File(Strict):
    path: str
    edits: list[Edit] = []


class Circle(Strict):
    kind: Literal["circle"]
    radius: int


class Square(Strict):
    kind: Literal["square"]
    width: int


class Tree(Strict):
    name: str
    children: list["Tree"] = []


class Empty(Strict):
    pass


@dataclass
class Pair:
    __pydantic_config__ = ConfigDict(extra="forbid")

    left: int


class Row(TypedDict):
    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    column: str


async def change(
    edit: Edit | None = None,
    edits: list[Edit] = [],  # noqa: B006
    files: list[File] = [],  # noqa: B006
    named: dict[str, Edit] = {},  # noqa: B006
    two: tuple[Edit, File] | None = None,
    either: Edit | list[File] | None = None,
    shape: Annotated[Circle | Square, Field(discriminator="kind")] | None = None,
    tree: Tree | None = None,
    empty: Empty | None = None,
    pair: Pair | None = None,
    row: Row | None = None,
    query: str | list[str] = "",
) -> str:
    """Change."""
    return ""


CHANGE = Function(change, "tool", Context)


def told(**arguments):
    with pytest.raises(InvalidArguments) as caught:
        CHANGE.bind(arguments)
    return str(caught.value)


UNKNOWN: list[tuple[dict[str, Any], str]] = [
    ({"edti": {}}, "unknown argument 'edti'; did you mean 'edit'?"),
    ({"edit": {"old": "", "nwe": ""}}, "edit: unknown argument 'nwe'; did you mean 'new'?"),
    ({"edit": {"old": "", "files": []}}, "edit: unknown argument 'files' (available: old, new)"),
    ({"edits": [{"old": "", "nwe": ""}]}, "edits.0: unknown argument 'nwe'; did you mean 'new'?"),
    ({"files": [{"path": "", "edit": []}]}, "files.0: unknown argument 'edit'; did you mean 'edits'?"),
    (
        {"files": [{"path": "", "edits": [{"old": ""}, {"old": "", "path": ""}]}]},
        "files.0.edits.1: unknown argument 'path' (available: old, new)",
    ),
    ({"named": {"a": {"old": "", "nwe": ""}}}, "named.a: unknown argument 'nwe'; did you mean 'new'?"),
    ({"two": [{"old": ""}, {"path": "", "pth": ""}]}, "two.1: unknown argument 'pth'; did you mean 'path'?"),
    (
        {"shape": {"kind": "circle", "width": 1, "radius": 1}},
        "shape: unknown argument 'width' (available: kind, radius)",
    ),
    (
        {"tree": {"name": "a", "children": [{"name": "b", "nmae": "c"}]}},
        "tree.children.0: unknown argument 'nmae'; did you mean 'name'?",
    ),
    ({"empty": {"x": 1}}, "empty: unknown argument 'x' (it takes none)"),
    ({"pair": {"left": 1, "lfet": 2}}, "pair: unknown argument 'lfet'; did you mean 'left'?"),
    ({"row": {"column": "", "colum": ""}}, "row: unknown argument 'colum'; did you mean 'column'?"),
]


def test_an_unknown_name_is_reported_with_the_names_of_its_object():
    assert [row for row in UNKNOWN if not told(**row[0]).startswith(row[1])] == []


def test_a_missing_argument_is_suggested_for_a_part_of_its_name():
    async def describe(table_name: str, sample: int = 0) -> str:
        """Describe."""
        return table_name

    with pytest.raises(InvalidArguments, match="unknown argument 'name'; did you mean 'table_name'"):
        Function(describe, "tool", Context).bind({"name": "a"})


def test_a_short_name_is_not_suggested_for_a_word_containing_it():
    async def resize(id: str, widths: int = 0) -> str:
        """Resize."""
        return id

    with pytest.raises(InvalidArguments, match="unknown argument 'width'; did you mean 'widths'"):
        Function(resize, "tool", Context).bind({"width": 5})


def test_union_errors_name_the_argument_and_not_the_member_type():
    assert told(query=5) == "query: Input should be a valid string; query: Input should be a valid array"
    assert told(query=["a", 5]) == "query: Input should be a valid string; query.1: Input should be a valid string"


def test_an_unknown_name_in_a_union_member_gets_a_suggestion():
    assert "either: unknown argument 'nwe'; did you mean 'new'?" in told(either={"old": "", "nwe": ""})
    assert "either.0: unknown argument 'pth'; did you mean 'path'?" in told(either=[{"path": "", "pth": ""}])


def test_equal_errors_of_union_members_appear_once():
    assert told(edits=5) == "edits: Input should be a valid array"
    assert told(either=5).count("either: ") == 2


def test_many_errors_are_truncated_with_a_count():
    message = told(edits=[{"old": ""}, *[{"new": 1}] * 50])
    assert message.startswith("edits.1.old: Field required; edits.1.new: ")
    assert message.endswith("; and 80 more")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"edits": [1] * 50_000}, "50,000 values are invalid, such as edits.0: Input should be"),
        (
            {**{f"n{number}": 1 for number in range(50_000)}, "edit": {"old": 5}},
            "50,000 values are invalid, such as edit.old",
        ),
        ({"edits": [*[{"old": ""}] * 20, *[{}] * 2_000]}, "2,000 values are invalid, none of them among the first"),
    ],
    ids=["items", "names", "later"],
)
def test_endless_errors_give_a_short_message(arguments, said):
    message = told(**arguments)
    assert message.startswith(said)
    assert len(message) < 3_000
