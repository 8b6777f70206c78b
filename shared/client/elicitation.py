"""What becomes of a form between the user and the server."""

from typing import Any

from ..errors import InvalidAnswer
from ..protocol.types.client import ElicitResult
from ..protocol.types.elicitation import ElicitForm
from .schema_cost import UnusableSchema
from .schemas import CheckedSchema

__all__ = ["completed"]


def completed(form: ElicitForm, answer: ElicitResult) -> ElicitResult:
    """`answer` as the server gets it: what an accepted form leaves out has its default (SEP-1034).

    Raises InvalidAnswer where it breaks the schema of the form.
    """
    if answer.action != "accept":
        return ElicitResult(action=answer.action)
    given = {name: value for name, value in (answer.content or {}).items() if value is not None}
    content: dict[str, Any] = {**form.defaults(), **given}
    _check(form.requested_schema, content)
    return ElicitResult(action="accept", content=content)


def _check(schema: dict[str, Any], content: dict[str, Any]) -> None:
    try:
        fault = CheckedSchema(schema, form=True).fault(content)
    except UnusableSchema:
        return  # the server, which made the form, has to look for itself
    if fault is not None:
        path, text = fault
        raise InvalidAnswer(f"the answer to a form is wrong at {'.'.join(path) or 'its top'}: {text}")
