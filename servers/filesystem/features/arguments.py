"""Types of the tools' parameters, with descriptions for the model, and the size limits of results."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from servers.common.arguments import OptionalText
from shared import Context

from ..files import Files

Ctx = Context[Files]
_OVERHEAD_BYTES = 1_000
"""Number of bytes in a result reserved for everything except its text."""

Count = Annotated[int, Field(ge=1), WithJsonSchema({"type": "integer"})]
"""A number of at least 1. The schema omits the minimum, which no model needs."""
OptionalCount = Annotated[int, Field(ge=0), WithJsonSchema({"type": "integer"})] | None
"""A number. As in the reference server, 0 counts as left out."""
Head = Annotated[OptionalCount, Field(description="first N lines")]
StartLine = Annotated[OptionalCount, Field(description="first line to read, from 1; head counts from it")]
Tail = Annotated[OptionalCount, Field(description="last N lines")]
Encoding = Annotated[OptionalText, Field(description="e.g. cp1252; default: the file's")]
Pages = Annotated[OptionalText, Field(description="of a document: 1,4-6, or a sheet's name")]
IfMatch = Annotated[OptionalText, Field(description="only if the file still has this etag")]
Patterns = Annotated[list[str], Field(description="globs")]
IncludeIgnored = Annotated[bool, Field(description="also what .gitignore excludes")]
CursorArgument = OptionalText
"""The cursor at the end of a truncated answer."""


class EditOperation(BaseModel, defer_build=True):
    """One replacement."""

    model_config = ConfigDict(extra="forbid")

    oldText: Annotated[str, Field(min_length=1, description="exact, or differing only in indentation")]  # noqa: N815
    newText: str  # noqa: N815
    count: Annotated[int, Field(ge=0, description="expected matches, all replaced; 0: any number")] = 1
    path: Annotated[str | None, Field(description="of another file")] = None


def read_budget(ctx: Ctx) -> int:
    """Return the maximum size, in bytes of JSON, of the text that a read returns."""
    return min(ctx.state.max_read, max(ctx.budget.page_bytes - _OVERHEAD_BYTES, 1))


def base64_capacity(budget: int) -> int:
    """Return the number of bytes whose base64 form fits the budget of a result."""
    return max(budget - _OVERHEAD_BYTES, 0) * 3 // 4
