"""Other names that documents 003 and 004 give to what the specification has: a client takes either.

Only what a server asks or says of itself is renamed here. Fields that the documents add, such as `title` in contents
and in `notifications/resources/updated` (001, 10.2), reach whoever reads them as they came, and so does -32000.
"""

from typing import Any

_QUESTIONS = {"sampling/complete": "sampling/createMessage", "elicitation/request": "elicitation/create"}
"""What a server asks in the words of 003, and what that is called in the specification."""


def standard_method(method: str) -> str:
    """The specification's name of what a server asks."""
    return _QUESTIONS.get(method, method)


def server_info(result: dict[str, Any]) -> object:
    """What the `result` of `initialize` says of the server: `serverInfo`, or where that is missing the
    `implementation` of 004."""
    return result.get("serverInfo", result.get("implementation"))
