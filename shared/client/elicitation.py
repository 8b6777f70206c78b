"""What becomes of a form between the user and the server."""

from typing import Any

from ..protocol.types.client import ElicitResult
from ..protocol.types.elicitation import ElicitForm

__all__ = ["completed"]


def completed(form: ElicitForm, answer: ElicitResult) -> ElicitResult:
    """`answer` as the server gets it: what an accepted form leaves out has its default (SEP-1034).

    Raises InvalidAnswer where it breaks the schema of the form.
    """
    if answer.action != "accept":
        return ElicitResult(action=answer.action)
    given = {name: value for name, value in (answer.content or {}).items() if value is not None}
    content: dict[str, Any] = {**form.defaults(), **given}
    return ElicitResult(action="accept", content=content)
