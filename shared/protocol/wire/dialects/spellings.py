"""Other names that documents 003 and 004 give to what the specification has: a client takes either.

Only what a server asks or says of itself is renamed here. Fields that the documents add, such as `title` in contents
and in `notifications/resources/updated` (001, 10.2), reach whoever reads them as they came, and so does -32000.
"""

from typing import Any

_QUESTIONS = {"sampling/complete": "sampling/createMessage", "elicitation/request": "elicitation/create"}
"""The methods of a server's requests in document 003, and their names in the specification."""


def standard_method(method: str) -> str:
    """The specification's name of what a server asks."""
    return _QUESTIONS.get(method, method)


def server_info(result: dict[str, Any]) -> object:
    """Return the server information in the `result` of `initialize`: `serverInfo`, or if that is missing the
    `implementation` of 004."""
    return result.get("serverInfo", result.get("implementation"))
