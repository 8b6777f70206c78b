"""Types of arguments that several servers have."""

from typing import Annotated

from pydantic import Field, WithJsonSchema

OptionalText = Annotated[str, Field(min_length=1), WithJsonSchema({"type": "string"})] | None
"""A text that is not empty. Some models send an empty one for every argument that they should leave out, so it counts
as left out (see `shared/server/functions/argument_coercion.py`). The schema omits the minimum for them."""
