"""Dialects: other descriptions of the protocol that a peer may follow instead of the specification.

They come from five documents about MCP, which are numbered 000 to 004 here. The first message of a connection
determines its dialect. From then on a `DialectConnection` converts between the peer's JSON and standard messages, so
the rest of the package knows nothing about dialects. A request in a dialect becomes a standard request that needs no
handshake, or a request for one of the methods of `extensions/dialects`, whose names no peer sends by accident.

    document       is recognized by                                             module
    000            a method that begins with `mcp/`                             document_000
    002            `call_tool`, `read_resource`, `render_prompt`, or an         document_002, forms_002
                   `initialize` without what the specification requires
    001, 003, 004  nothing: they follow the specification, except for a         spellings
                   few other names, which a client accepts from servers

README.md lists, section by section, what each document requires, what is implemented, and where the specification
differs.
"""

import re
from collections.abc import Sequence
from typing import Any, Protocol

from ..jsonrpc import Failure, Malformed, Message

__all__ = ["CLIENT_DIALECTS", "SEMANTIC_VERSION", "DialectConnection", "client_dialect", "find_dialect"]

CLIENT_DIALECTS = ("000", "002")
"""The numbers of the documents that a client can follow."""

SEMANTIC_VERSION = r"([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})"
"""A version in the form that document 002 uses, MAJOR.MINOR.PATCH."""

_METHODS_002 = ("call_tool", "read_resource", "render_prompt")


class DialectConnection(Protocol):
    """The state of one connection to a peer that uses a dialect, with its requests in progress."""

    document: str
    """The number of the document that describes the dialect."""

    def read(self, value: dict[str, Any]) -> Sequence[Message]:
        """Return the messages in `value`. Never raises because of its content."""

    def refuse(self, answer: Failure) -> Malformed:
        """Return the message for a text from the peer that is not a valid message. `answer` is the error for the
        peer, which `write` sends in the dialect's form."""

    def write(self, message: Message) -> dict[str, Any] | None:
        """Return `message` in the dialect's form; None if nothing is sent. If a bug makes this raise, the request
        stays open, so that the caller can write an error for it."""


def find_dialect(value: dict[str, Any], *, is_stream: bool) -> DialectConnection | None:
    """Return the dialect of a connection whose first message is `value`; None for the specification. `is_stream` is
    False if the connection is a single POST."""
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


def client_dialect(document: str) -> DialectConnection:
    """Return the client's side of a connection to a server that follows the document with that number. Raises
    ValueError for an unknown number."""
    match document:
        case "000":
            from .client_000 import Client000

            return Client000()
        case "002":
            from .client_002 import Client002

            return Client002()
    raise ValueError(f"the dialect must be {' or '.join(CLIENT_DIALECTS)}, not {document[:100]!r}")


def _belongs_to_002(params: Any) -> bool:
    """Return True if an `initialize` with these params follows document 002. The params that the specification
    requires are missing, and they are empty or contain a version in that document's form."""
    if not isinstance(params, dict) or "capabilities" in params or "clientInfo" in params:
        return False
    version = params.get("protocolVersion")
    is_semantic = isinstance(version, str) and re.fullmatch(SEMANTIC_VERSION, version) is not None
    return not params or is_semantic or not {"version", "minVersion", "maxVersion"}.isdisjoint(params)
