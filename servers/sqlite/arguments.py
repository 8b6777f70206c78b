"""What the tools take besides plain values: types with the words that tell a model how to use them."""

from typing import Annotated, Any

from pydantic import Field

__all__ = ["CursorArgument", "DatabaseArgument", "MaxRowsArgument", "ParametersArgument", "QueryArgument"]

QueryArgument = Annotated[str, Field(description="one statement in SQLite's SQL")]
DatabaseArgument = Annotated[str | None, Field(description="its name, where there are several")]
ParametersArgument = Annotated[
    list[Any] | dict[str, Any], Field(description="values for ?, by position, or for :name, by name")
]
MaxRowsArgument = Annotated[int | None, Field(ge=1, description="rows at most")]
CursorArgument = Annotated[str | None, Field(description="goes on after an answer that was cut; same query")]
