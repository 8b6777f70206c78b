"""What the tools take and give besides plain values: types with the words that tell a model how to use them."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["AllowedDirectories", "EditOperation", "FirstLines", "LastLines", "PathArgument", "Patterns"]

PathArgument = Annotated[str, Field(description="absolute, relative to the allowed directory, or a file:// URI")]
FirstLines = Annotated[int | None, Field(ge=1, description="only the first lines, this many")]
LastLines = Annotated[int | None, Field(ge=1, description="only the last lines, this many")]
Patterns = Annotated[list[str], Field(description="globs of what to leave out, e.g. node_modules")]


class EditOperation(BaseModel):
    """One replacement."""

    model_config = ConfigDict(extra="forbid")

    oldText: Annotated[str, Field(min_length=1, description="text that stands exactly once in the file")]  # noqa: N815
    newText: Annotated[str, Field(description="what to put in its place")]  # noqa: N815


class AllowedDirectories(BaseModel):
    """The directories this server may work in, and those of them where it may change files."""

    directories: list[str]
    writable: list[str]
