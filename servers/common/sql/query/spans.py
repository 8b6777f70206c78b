"""Opens tracing spans for statements. A span contains the kind of the statement and the database, never the text."""

import re
from contextlib import AbstractContextManager

from shared.tracing import spans

_KINDS = frozenset(
    (
        *("ALTER", "ANALYZE", "CREATE", "DELETE", "DROP", "EXPLAIN", "INSERT", "MERGE", "PRAGMA", "REINDEX"),
        *("REPLACE", "SELECT", "SHOW", "TABLE", "TRUNCATE", "UPDATE", "VACUUM", "VALUES", "WITH"),
    )
)
_FIRST_WORD = re.compile(r"(?:\s+|--[^\n]*|/\*.*?(?:\*/|$))*(\w*)", re.DOTALL)


def kind_of(statement: str) -> str:
    """Return the first word of a statement in capitals, or "OTHER" if the word is not in `_KINDS`."""
    match = _FIRST_WORD.match(statement)
    word = "" if match is None else match[1].upper()
    return word if word in _KINDS else "OTHER"


def statement_span(statement: str, system: str, database: str) -> AbstractContextManager[spans.Span]:
    """Open a span for a block that runs `statement` in the `database` of a `system`.

    If the block runs several statements, `statement` must begin with the first one.
    """
    if spans.tracer is None:
        return spans.NO_SPAN
    kind = kind_of(statement)
    attributes = {"db.system.name": system, "db.namespace": database, "db.operation.name": kind}
    return spans.span(f"{kind} {database}", attributes, kind="client")
