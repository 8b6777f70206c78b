"""Models as forms."""

import datetime as dt
from enum import Enum
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field, create_model

from shared.errors import DeclarationError
from shared.protocol.session.questions import elicit_form
from shared.protocol.shaping import shape_question
from shared.protocol.versions import V2025_11_25
from shared.server.context import form_schema
from tests import schemas


class Colour(Enum):
    RED = "red"


class Inner(BaseModel):
    a: int


def form(kind, default=...):
    return create_model("Form", field=(kind, default))


def field(kind, default=...):
    return form_schema(form(kind, default))["properties"]["field"]


FITTING = [
    (str, {"type": "string"}),
    (Annotated[str, Field(min_length=1, max_length=5)], {"type": "string", "minLength": 1, "maxLength": 5}),
    (Annotated[str, Field(description="Why", title="T")], {"type": "string", "description": "Why", "title": "T"}),
    (dt.date, {"type": "string", "format": "date"}),
    (dt.datetime, {"type": "string", "format": "date-time"}),
    (int, {"type": "integer"}),
    (Annotated[float, Field(ge=0, le=1)], {"type": "number", "minimum": 0, "maximum": 1}),
    (bool, {"type": "boolean"}),
    (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
    (Literal["a"], {"type": "string", "enum": ["a"]}),
    (list[Literal["a", "b"]], {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}),
]


@pytest.mark.parametrize(("kind", "expected"), FITTING, ids=str)
def test_what_a_form_can_show(kind, expected):
    assert field(kind) == expected


@schemas.requires_spec
@pytest.mark.parametrize("kind", [kind for kind, _ in FITTING], ids=str)
def test_a_form_fits_the_official_schema(kind):
    question = elicit_form("?", form_schema(form(kind)))
    params = shape_question(question.method, question.params, V2025_11_25)
    message = {"jsonrpc": "2.0", "id": 1, "method": question.method, "params": params}
    schemas.check(message, "2025-11-25")


@pytest.mark.parametrize(
    "kind",
    [
        Inner,
        Colour,
        dict[str, int],
        list[str],
        list[int],
        int | str,
        Annotated[int, Field(gt=0)],
        Annotated[int, Field(multiple_of=2)],
        Annotated[str, Field(pattern="a")],
        dt.timedelta,
        dt.time,
        bytes,
    ],
    ids=str,
)
def test_what_no_form_can_show_is_refused_by_name(kind):
    with pytest.raises(DeclarationError, match=r"Form\.field"):
        form_schema(form(kind))


def test_a_field_with_a_default_is_not_required():
    assert form_schema(form(int, 5)) == {"type": "object", "properties": {"field": {"type": "integer", "default": 5}}}


def test_a_field_without_is():
    assert form_schema(form(int))["required"] == ["field"]


def test_an_optional_field_may_be_left_out():
    assert field(str | None, None) == {"type": "string"}
