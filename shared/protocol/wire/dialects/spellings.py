"""Names that differ between documents 003 and 004 and the specification; a client accepts both.

They are the methods of requests from a server, and the server's description of itself. Nothing else needs a
conversion: fields that the documents add, such as `title` in contents and in `notifications/resources/updated`
(document 001, section 10.2), and the error code -32000 are passed on unchanged.
"""

from typing import Any

_STANDARD_METHODS = {"sampling/complete": "sampling/createMessage", "elicitation/request": "elicitation/create"}
"""The standard methods of requests from a server, by their names in document 003."""


def standard_method(method: str) -> str:
    """Return the standard name of the method of a request from a server."""
    return _STANDARD_METHODS.get(method, method)


def server_info(result: dict[str, Any]) -> object:
    """Return the server information in a `result` of `initialize`: `serverInfo`, or if that is missing the
    `implementation` of document 004."""
    return result.get("serverInfo", result.get("implementation"))
