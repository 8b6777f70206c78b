"""What who collects spans is told of a statement: which kind it is, and of which database; nothing of its text."""

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
    """The first word of a statement, "OTHER" where it is none that begins one."""
    found = _FIRST_WORD.match(statement)
    word = "" if found is None else found[1].upper()
    return word if word in _KINDS else "OTHER"


def statement_span(statement: str, system: str, database: str) -> AbstractContextManager[spans.Span]:
    """A span as long as the block, in which `statement` runs in the `database` of a `system`; of several statements
    it is the first."""
    if spans.tracer is None:
        return spans.NOBODY
    kind = kind_of(statement)
    about = {"db.system.name": system, "db.namespace": database, "db.operation.name": kind}
    return spans.span(f"{kind} {database}", about, kind="client")
