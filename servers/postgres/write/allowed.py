"""Which statements a client may change a database with.

PostgreSQL keeps to the rights of the role. Here stands what no call may do with them: end the transaction that all of
its statements are in, leave something behind in the session, reach files and programs of the server, or change what
is the operator's, as rights and roles. What is allowed is named; whatever is new in PostgreSQL is refused until then.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import dropwhile, pairwise

from servers.common.sql.errors import SqlError
from servers.postgres.engine.denied_functions import find_reason
from servers.postgres.engine.statement_text import Statement

Words = Sequence[str]

_DATA = {"SELECT", "WITH", "VALUES", "TABLE", "INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "CALL"}
_OTHERS = {"ANALYZE", "REFRESH", "REINDEX", "EXPLAIN", "SHOW"}
_SCHEMA = {"CREATE", "ALTER", "DROP", "COMMENT"}

_MODIFIERS = {
    "OR",
    "REPLACE",
    "GLOBAL",
    "LOCAL",
    "TEMP",
    "TEMPORARY",
    "UNLOGGED",
    "UNIQUE",
    "RECURSIVE",
    "CONSTRAINT",
}
"""What stands between CREATE and the kind."""
_KINDS = {
    *("TABLE", "INDEX", "VIEW", "MATERIALIZED", "SEQUENCE", "SCHEMA", "TYPE", "DOMAIN", "STATISTICS"),
    *("TRIGGER", "RULE", "FUNCTION", "PROCEDURE", "ROUTINE", "AGGREGATE"),
}
_COMMENTED = _KINDS | {"COLUMN", "CONSTRAINT"}
_ROUTINES = {"FUNCTION", "PROCEDURE", "ROUTINE"}
_LANGUAGES = {"SQL", "PLPGSQL"}
_SEQUENCES = {"nextval", "setval"}
"""What no query may call, and a change may."""
_CALL = re.compile(r"(\w+)\"?\s*\(")
"""A function that is called in the text of another one, or what looks like that."""

_TRANSACTION = "the statements of one call are one transaction, which the server commits at its end", ""
_SETTINGS = "settings of the session are the operator's", ""
_NOTICES = "a call neither hears nor sends notifications", "Subscribe to the resource of a table instead."
_KEPT = "nothing is kept from one call to the next", "Run the statement itself, with its parameters."
_CURSORS = "no cursor is kept from one call to the next", "Use SELECT, or read_query, which pages."
_UPKEEP = "upkeep of the whole database is the operator's, and no part of a transaction", ""
_RIGHTS = "rights are the operator's", ""
_REASONS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE"), _TRANSACTION),
    **dict.fromkeys(("SET", "RESET", "DISCARD"), _SETTINGS),
    **dict.fromkeys(("LISTEN", "UNLISTEN", "NOTIFY"), _NOTICES),
    **dict.fromkeys(("PREPARE", "EXECUTE", "DEALLOCATE"), _KEPT),
    **dict.fromkeys(("DECLARE", "FETCH", "MOVE", "CLOSE"), _CURSORS),
    **dict.fromkeys(("VACUUM", "CHECKPOINT", "CLUSTER", "LOAD"), _UPKEEP),
    **dict.fromkeys(("GRANT", "REVOKE", "REASSIGN", "SECURITY"), _RIGHTS),
    "COPY": ("it reads and writes files, or the connection itself", "Use import_csv, or export."),
    "DO": (
        "what it would do stands in a text that nobody is asked about",
        "Run the statements themselves, or make a function of them.",
    ),
    "LOCK": ("the statements of a call take the locks that they need", ""),
}


def check_change(sql: str) -> Words:
    """The words of a statement that a client may run: without comments and leading parentheses, what is not quoted in
    capitals, other tokens as they stand. Raises SqlError, `refused` for one that may not be run.
    """
    statement = Statement(sql)
    texts = ((token, statement.text(token)) for token in statement.tokens)
    all_words = [text.upper() if token.kind == "word" else text for token, text in texts]
    # A query may stand in parentheses, as in (SELECT 1) UNION (SELECT 2).
    words: Words = [*dropwhile(lambda word: word[0] == "(", all_words)] or all_words
    if words[0] in _SCHEMA:
        _check_definition(words)
    elif words[0] not in _DATA | _OTHERS:
        raise _refuse(*_REASONS.get(words[0], ("it is none of those that this tool runs", "")))
    # The letters of such a name may be escapes, so that nobody sees what it names.
    if any(token.kind == "unicode" for token in statement.tokens):
        raise _refuse('it has a name of the form U&"…"', 'Write the name between plain quotes: "…".')
    _check_calls(statement.find_calls())
    # The body of a function is a string: what it calls stands in that.
    if not _ROUTINES.isdisjoint(words):
        bodies = (word for word in words if word[0] in "'$eE")
        _check_calls(name.lower() for body in bodies for name in _CALL.findall(body))
    return words


def _check_calls(names: Iterable[str]) -> None:
    for name in names:
        if name not in _SEQUENCES and (act := find_reason(name)) is not None:
            raise _refuse(f"{name}() {act}")


def check_table(words: Words) -> None:
    """Raises SqlError `refused` unless the statement makes a table that stays, and nothing else."""
    kind = [word for word in words[1:3] if word != "UNLOGGED"]
    if words[0] != "CREATE" or kind[:1] != ["TABLE"]:
        raise SqlError("refused", "the statement is no CREATE TABLE", "Use read_query or write_query.")


def defines(words: Words) -> bool:
    """Whether the statement says of itself that it changes the schema."""
    return words[0] in _SCHEMA


def _check_definition(words: Words) -> None:
    act, *rest = words
    if act == "COMMENT":
        rest = [word for word in rest[:2] if word != "ON"]
    while act == "CREATE" and rest and rest[0] in _MODIFIERS:
        del rest[0]
    kind = rest[0] if rest else ""
    if kind not in (_COMMENTED if act == "COMMENT" else _KINDS):
        what = f"{act} {kind}" if kind.isalpha() else act
        raise _refuse(f"{what} is the operator's, for it concerns more than the tables of one database")
    if act != "COMMENT":
        _check_rights(kind, rest)


def _check_rights(kind: str, words: Words) -> None:
    if (
        _has(words, "OWNER", "TO")
        or _has(words, "ROW", "LEVEL", "SECURITY")
        or (kind == "SCHEMA" and "GRANT" in words)
    ):
        raise _refuse(*_RIGHTS)
    if kind not in _ROUTINES:
        return
    if _has(words, "SECURITY", "DEFINER"):
        raise _refuse("a function with SECURITY DEFINER lends rights to others, and rights are the operator's")
    for name, language in pairwise(words):
        if name == "LANGUAGE" and language.strip("\"'").upper() not in _LANGUAGES:
            raise _refuse("functions are made in SQL and PL/pgSQL only")


def _has(words: Words, *wanted: str) -> bool:
    size = len(wanted)
    return any(tuple(words[at : at + size]) == wanted for at in range(len(words) - size + 1))


def _refuse(reason: str, suggestion: str = "") -> SqlError:
    return SqlError("refused", f"the statement is not allowed: {reason}", suggestion)
