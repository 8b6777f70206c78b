"""What the tools take besides plain values: types with the words that tell a model how to use them."""

from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

__all__ = [
    "SCALAR",
    "CursorArgument",
    "DatabaseArgument",
    "MaxRowsArgument",
    "ParametersArgument",
    "QueryArgument",
]

# What hosts and models are told of a parameter. Some hosts can't convey null, a value of any type, or an object whose
# names are not known; whoever sends these is understood all the same.
SCALAR = {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]}

QueryArgument = Annotated[str, Field(description="one statement in SQLite's SQL")]
DatabaseArgument = Annotated[str | None, Field(description="its name, where there are several")]
ParametersArgument = Annotated[
    list[Any] | dict[str, Any],
    WithJsonSchema({"type": "array", "items": SCALAR}),
    Field(description="values for ?, in order; write NULL and blobs into the statement"),
]
MaxRowsArgument = Annotated[int | None, Field(ge=1, description="rows at most")]
CursorArgument = Annotated[str | None, Field(description="goes on after an answer that was cut; same query")]
