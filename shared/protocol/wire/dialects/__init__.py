"""Dialects: older descriptions of the protocol that a peer may use instead of the specification.

The first message of a connection determines its dialect, and from then on a `Dialect` converts between the peer's
JSON and standard messages. The core does not know dialects: a request in a dialect becomes a standard one that needs
no handshake, or one of the methods of `extensions/dialects`, whose names no peer sends by accident.

    document       is recognized by                                             module
    000            a method that begins with `mcp/`                             document_000
    002            `call_tool`, `read_resource`, `render_prompt`, or an         document_002, forms_002
                   `initialize` without what the specification requires
    001, 003, 004  nothing: they have other names for parts of the              spellings
                   specification, and a client accepts those of servers

README.md lists, section by section, what each document requires, what is implemented, and where the specification
differs.
"""

import re
from collections.abc import Sequence
from typing import Any, Protocol

from ..jsonrpc import Failure, Malformed, Message

__all__ = ["CLIENT_DIALECTS", "SEMANTIC_VERSION", "Dialect", "client_dialect", "find_dialect"]

CLIENT_DIALECTS = ("000", "002")
"""The documents that a client can speak."""

SEMANTIC_VERSION = r"([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})"
"""A version in the form of document 002, MAJOR.MINOR.PATCH."""

_METHODS_002 = ("call_tool", "read_resource", "render_prompt")


class Dialect(Protocol):
    """The state of one connection with a dialect, including its requests in progress."""

    name: str
    """The number of the document that describes it."""

    def read(self, value: dict[str, Any]) -> Sequence[Message]:
        """Return the messages in `value`. Never raises because of its content."""

    def refuse(self, answer: Failure) -> Malformed:
        """Return the replacement for text that is not a message, so that `write` sends this answer with the peer's
        id."""

    def write(self, message: Message) -> dict[str, Any] | None:
        """Return `message` in the dialect's form; None if nothing is sent. If this raises, which is a bug, the
        request stays open, so that a failure can be written for it."""


def find_dialect(value: dict[str, Any], *, is_stream: bool) -> Dialect | None:
    """Return the dialect of the connection, a stream or a single POST, whose first message is `value`; None for the
    specification. A dialect's module is imported when it is needed."""
    method = value.get("method")
    if not isinstance(method, str):
        return None
    if method.startswith("mcp/"):
        from .document_000 import Document000

        return Document000(is_stream=is_stream)
    if method in _METHODS_002 or (method == "initialize" and _belongs_to_002(value.get("params"))):
        from .document_002 import Document002

        return Document002()
    return None


def client_dialect(document: str) -> Dialect:
    """Return the client's side of one connection with a server of `document`. Raises ValueError for an unknown
    one."""
    match document:
        case "000":
            from .client_000 import Client000

            return Client000()
        case "002":
            from .client_002 import Client002

            return Client002()
    raise ValueError(f"the dialect must be {' or '.join(CLIENT_DIALECTS)}, not {document[:100]!r}")


def _belongs_to_002(params: Any) -> bool:
    """Return True if an `initialize` with these params belongs to document 002: they are empty, or contain a version
    in that document's form, without the specification's other params."""
    if not isinstance(params, dict) or "capabilities" in params or "clientInfo" in params:
        return False
    named = params.get("protocolVersion")
    is_semantic = isinstance(named, str) and re.fullmatch(SEMANTIC_VERSION, named) is not None
    return not params or is_semantic or not {"version", "minVersion", "maxVersion"}.isdisjoint(params)
