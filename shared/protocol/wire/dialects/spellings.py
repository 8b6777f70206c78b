"""Names in documents 003 and 004 for parts of the specification; a client accepts both.

Only a server's requests and self-description are renamed here. Fields that the documents add, such as `title` in
contents and in `notifications/resources/updated` (001, 10.2), are passed on unchanged, and so is -32000.
"""

from typing import Any

_QUESTIONS = {"sampling/complete": "sampling/createMessage", "elicitation/request": "elicitation/create"}
"""The methods of a server's requests in document 003, and their names in the specification."""


def standard_method(method: str) -> str:
    """Return the standard name of the method of a server's request."""
    return _QUESTIONS.get(method, method)


def server_info(result: dict[str, Any]) -> object:
    """Return the server information in the `result` of `initialize`: `serverInfo`, or if that is missing the
    `implementation` of 004."""
    return result.get("serverInfo", result.get("implementation"))
