"""The arguments that several tools take, as types with the words that tell a model how to use them; and which tools
there are none of.
"""

from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from servers.common.sql.features.context import SCALAR

from ..settings import Settings

RESULT_APP, SCHEMA_APP = "ui://postgres/result", "ui://postgres/schema"
"""The pages that show rows, and a database."""

QueryArgument = Annotated[str, Field(description="one statement in PostgreSQL's SQL")]
ParametersArgument = Annotated[
    list[Any] | dict[str, Any],
    WithJsonSchema({"type": "array", "items": SCALAR}),
    Field(description="values for $1, $2 and so on, in order; write NULL into the statement"),
]


def check_writable(settings: Settings) -> str | None:
    """Why the tools that change databases are not offered, or None where they are."""
    if settings.writes:
        return None
    return "read_only: this server was started without --allow-write, and without a database with :rw"
