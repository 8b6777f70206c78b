"""A result is sent only if it matches the declared schema."""

from collections import deque
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NewType
from uuid import UUID

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, field_serializer
from typing_extensions import TypeAliasType, TypedDict

from shared import CallToolResult, Data, Implementation, Server
from shared.errors import ToolError
from shared.server.results import Result
from tests.shared.server.peer import ERAS, talking

PLENTY = 100_000


class Size(BaseModel):
    width: Annotated[int, Field(ge=0)]
    depth: float | None = None
    inner: "Size | None" = None


class Row(TypedDict):
    name: str
    count: int


@dataclass
class Weight:
    grams: int


class Colour(Enum):
    RED = "red"


class Place(NamedTuple):
    line: int
    column: int | None = None


Number = NewType("Number", int)
Numbers = TypeAliasType("Numbers", list[int])


class Shouted(BaseModel):
    word: str

    @field_serializer("word")
    def _shout(self, word: str) -> list[str]:
        return [word.upper()]


class Kind(TypedDict):
    type: str
    metadata: str


class Rated(TypedDict):
    metadata: float


WRONG: list[tuple[Any, Any, str]] = [
    (dict[str, int], {"a": "x"}, "returned dict, but declares dict[str, int]: a: Input should be a valid integer"),
    (int, "abc", "returned str, but declares int: Input should be a valid integer"),
    (int, True, "returned bool, but declares int: Input should be a valid integer"),
    (list[int], None, "returned NoneType, but declares list[int]: Input should be a valid"),
    (float, float("nan"), "returned float, but declares float: JSON has no NaN and no Infinity"),
    (list[dict[str, float]], [{"a": 1.0}, {"a": float("inf")}], ": 1: a: JSON has no NaN and no Infinity"),
    (Colour, "blue", "returned str, but declares Colour: Input should be 'red'"),
    (date, "today", "returned str, but declares date: Input should be a valid date"),
    (Decimal, Decimal("NaN"), "returned Decimal, but declares Decimal: "),
    (Place, Place("x"), "returned Place, but declares Place: 0: Input should be a valid integer"),  # type: ignore[arg-type]
    (
        Sequence[int],
        (number for number in [1]),
        "returned generator, but declares collections.abc.Sequence[int]; use list",
    ),
    (dict[str, bytes], {"a": b"\xff"}, ": bytes are sent as UTF-8 text; encode others"),
    (float | str, float("-inf"), ": float: JSON has no NaN and no Infinity"),
    (float, None, "returned NoneType, but declares float: Input should be a valid number"),
    (Annotated[int, Field(ge=0)], -1, "Input should be greater than or equal to 0"),
    (
        Size,
        Size.model_construct(width="x"),
        "returned Size, but declares Size: width: Input should be a valid integer",
    ),
    (Size, Size.model_construct(depth=1.0), "width: Field required"),
    (Size, Size(width=1).model_copy(update={"width": -1}), "width: Input should be greater than or equal to 0"),
    (Size, Size(width=1, inner=Size.model_construct(width=None)), "inner: width: Input should be a valid integer"),
    (list[Weight], [Weight("x")], "0: grams: Input should be a valid integer"),  # type: ignore[arg-type]
    (Row, {"name": "a"}, "returned dict, but declares Row: count: Field required"),
    (dict[str, Any], {"a": object()}, "returned dict, but declares dict[str, typing.Any]"),
    (Shouted, Shouted.model_construct(word=5), "returned Shouted, but declares Shouted"),
    (Size, CallToolResult(content=[]), "returned CallToolResult, but declares"),
    (str, 5, "returned int, but declares str"),
    (Data[Row], Data({"name": "a"}, "text"), "count: Field required"),
    (Rated, {"metadata": float("nan")}, "metadata: JSON has no NaN and no Infinity"),
    (Data[Row], Data({"name": "a"}, "text", is_json=True), "count: Field required"),
]
RIGHT: list[tuple[Any, Any, Any]] = [
    (Size, Size(width=1, inner=Size(width=2)), {"width": 1, "depth": None} | {"inner": {"width": 2, "depth": None}}),
    (list[date], [date(2026, 1, 2)], ["2026-01-02"]),
    (Colour, Colour.RED, "red"),
    (Decimal, Decimal("1.50"), "1.50"),
    (Decimal, 0, "0"),
    (list[Decimal | None], [1.5, None], ["1.5", None]),
    (complex, 1, "1+0j"),
    (Kind, {"type": "a", "metadata": "b"}, {"type": "a", "metadata": "b"}),
    (Place, Place(1), [1, None]),
    (Mapping[str, int], {"a": 1}, {"a": 1}),
    (Numbers, [1], [1]),
    (dict[Colour, int], {Colour.RED: 1}, {"red": 1}),
    (dict[int, float], {1: 2}, {"1": 2.0}),
    (tuple[Literal["a"], bool], ("a", True), ["a", True]),
    (Shouted, Shouted(word="a"), {"word": ["A"]}),
    (Row, {"name": "a", "count": 1}, {"name": "a", "count": 1}),
]


@pytest.mark.parametrize(("declared", "value", "reason"), WRONG)
def test_values_that_violate_the_declared_type_are_refused(declared: Any, value: Any, reason: str) -> None:
    with pytest.raises(ToolError) as raised:
        Result(declared, "tool 'a'").to_wire(value, PLENTY)
    assert str(raised.value).startswith("tool 'a' returned ")
    assert reason in str(raised.value)


@pytest.mark.parametrize(("declared", "value", "sent"), RIGHT)
def test_valid_values_are_sent(declared: Any, value: Any, sent: Any) -> None:
    result = _unnested(Result(declared, "tool 'a'").to_wire(value, PLENTY)["structuredContent"])
    assert result == sent


def _unnested(data: Any) -> Any:
    """The data without the empty `inner` of a size."""
    if isinstance(data, dict):
        return {key: _unnested(value) for key, value in data.items() if key != "inner" or value is not None}
    return data


TYPES = [
    *(int, float, bool, list[int], dict[str, int], tuple[int, str], int | None, Size, Weight, Row, list[Size]),
    *(Colour, date, Decimal, UUID, timedelta, Path, Place, Sequence[int], Set[int], Mapping[str, float], deque[int]),
    *(Colour | int, list[Place], Number, Numbers),
]
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.sampled_from([Colour.RED, Path("a"), Place(1), Place("x"), {1}, {"x"}, deque([1, None])]),  # type: ignore[arg-type]
    st.dates(),
    st.decimals(),
    st.uuids(),
    st.timedeltas(),
    st.builds(Weight, st.one_of(st.integers(), st.text(max_size=2))),
    st.builds(lambda **fields: Size.model_construct(**fields), width=st.one_of(st.integers(), st.none())),
    st.fixed_dictionaries({}, optional={"name": st.text(max_size=2), "count": st.one_of(st.integers(), st.text())}),
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.one_of(st.lists(inner, max_size=3), st.tuples(inner, inner)), max_leaves=4
)


@given(st.sampled_from(TYPES), VALUES)
def test_no_sent_value_violates_its_schema(declared: Any, value: Any) -> None:
    result = Result(declared, "tool 'a'")
    try:
        sent = result.to_wire(value, PLENTY)
    except ToolError:
        return
    assert jsonschema_rs.validator_for(result.schema or {}).is_valid(sent["structuredContent"])


@pytest.mark.parametrize("era", ERAS)
async def test_an_invalid_result_is_reported_to_the_client_and_logged(
    era: str, caplog: pytest.LogCaptureFixture
) -> None:
    app: Server[None] = Server(Implementation(name="made", version="1"))

    @app.tool
    async def count() -> int:
        """Counts."""
        return "abc"  # type: ignore[return-value]

    async with talking(app, era) as peer:
        result = (await peer.request("tools/call", {"name": "count", "arguments": {}}))["result"]
    said = "tool 'count' returned str, but declares int: Input should be a valid integer"
    assert (result["isError"], result["content"][0]["text"]) == (True, said)
    assert "structuredContent" not in result
    assert said in caplog.text
