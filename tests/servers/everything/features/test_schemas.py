"""Forms of the bench server, and field types that no form supports."""

from typing import Annotated
from uuid import UUID

import pytest
from pydantic import BaseModel, Field

from servers.everything.features import schemas
from shared.errors import DeclarationError
from shared.server.dispatch.context import form_schema


def test_a_form_keeps_defaults_titles_and_formats() -> None:
    fields = form_schema(schemas.Everything)["properties"]
    assert fields["nickname"] == {"type": "string", "title": "Nickname", "minLength": 2, "maxLength": 20}
    assert fields["email"] == {"type": "string", "format": "email"}
    assert fields["fingers"] == {"type": "integer", "minimum": 0, "maximum": 20, "default": 10}


def test_a_form_keeps_each_kind_of_choice() -> None:
    fields = form_schema(schemas.Choices)["properties"]
    assert fields["untitledSingle"] == {"type": "string", "enum": ["option1", "option2", "option3"]}
    assert "enum" not in fields["titledSingle"]
    assert len(fields["legacyEnum"]["enumNames"]) == 3
    assert "anyOf" in fields["titledMulti"]["items"]


ODD = {
    "exclusiveMinimum": Annotated[float, Field(gt=0)],
    "multipleOf": Annotated[int, Field(multiple_of=2)],
    "pattern": Annotated[str, Field(pattern="a+")],
    "uuid": UUID,
}


def test_an_unsupported_field_type_is_refused_by_name() -> None:
    for named, kind in ODD.items():
        form = type("Odd", (BaseModel,), {"__annotations__": {"value": kind}})
        with pytest.raises(DeclarationError, match=rf"Odd\.value: a form can't show .*{named}"):
            form_schema(form)
