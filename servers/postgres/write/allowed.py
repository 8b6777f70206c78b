"""Decides which statements a client may use to change a database.

PostgreSQL enforces the role's permissions. This module also refuses statements that would end the transaction of the
call, leave something behind in the session, access files and programs on the machine of PostgreSQL, or change what
only the operator should change, such as permissions and roles. It lists the allowed statements, so a statement that
is new in PostgreSQL is refused until it is added to the list.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import dropwhile, pairwise
from typing import NamedTuple

from servers.common.sql.errors import SqlError

from ..engine.denied_functions import find_reason
from ..engine.statement_text import Statement

Words = Sequence[str]

_DATA_WORDS = {"SELECT", "WITH", "VALUES", "TABLE", "INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "CALL"}
_OTHER_WORDS = {"ANALYZE", "REFRESH", "REINDEX", "EXPLAIN", "SHOW"}
_SCHEMA_WORDS = {"CREATE", "ALTER", "DROP", "COMMENT"}

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
"""Words between CREATE and the kind of object."""
_OBJECT_KINDS = {
    *("TABLE", "INDEX", "VIEW", "MATERIALIZED", "SEQUENCE", "SCHEMA", "TYPE", "DOMAIN", "STATISTICS"),
    *("TRIGGER", "RULE", "FUNCTION", "PROCEDURE", "ROUTINE", "AGGREGATE"),
}
_COMMENTABLE_KINDS = _OBJECT_KINDS | {"COLUMN", "CONSTRAINT"}
_ROUTINES = {"FUNCTION", "PROCEDURE", "ROUTINE"}
_LANGUAGES = {"SQL", "PLPGSQL"}
_SEQUENCE_FUNCTIONS = {"nextval", "setval"}
"""Functions that a statement which changes a database may call, although a query may not."""
_CALL = re.compile(r"(\w+)\"?\s*\(")
"""A function call, or text that looks like one, in the body of a function."""

_TEMPORARY = {"TEMP", "TEMPORARY"}
_BEFORE_TEMPORARY = {"INTO", "LOCAL", "GLOBAL"}
"""Words that may stand before TEMP in a query that creates a temporary table (SELECT ... INTO TEMP)."""

_USE_PSQL = "The operator can run it with psql."
_TRANSACTION = "the statements of one call are one transaction, which the server commits at its end", "Omit it."
_SETTINGS = (
    "the settings of the session are up to the operator",
    "The operator can set them for the role (ALTER ROLE).",
)
_SETTING_SUGGESTIONS = {
    "SEARCH_PATH": "Write the schema before each name. The operator can add ?search_path=NAME to the URL.",
    "SCHEMA": "Write the schema before each name. The operator can add ?search_path=NAME to the URL.",
    "TIMEZONE": "Use AT TIME ZONE.",
    "TIME": "Use AT TIME ZONE.",
    "DATESTYLE": "Use to_char and to_date.",
    "STATEMENT_TIMEOUT": "The operator can add ?statement_timeout=TIME to the URL, or raise --timeout.",
    "LOCK_TIMEOUT": "The operator can add ?lock_timeout=TIME to the URL, or raise --busy-timeout.",
    "SESSION_REPLICATION_ROLE": "Declare the constraint DEFERRABLE, and use SET CONSTRAINTS ALL DEFERRED.",
}
"""For each setting, what to write in a statement instead, or how the operator can set it."""
_NOTIFICATIONS = "a call neither receives nor sends notifications", "Subscribe to the resource of a table instead."
_PREPARED = "nothing is kept between calls", "Run the statement itself, with its parameters."
_CURSORS = "no cursor is kept between calls", "Use SELECT, or read_query, which pages."
_MAINTENANCE = (
    "maintenance of the whole database is up to the operator, and can't be part of a transaction",
    _USE_PSQL,
)
_RIGHTS = "rights are the operator's decision"
_POLICIES = "row-level security is the operator's decision"
_ROLES = "roles are the operator's decision"
_ROLE_KINDS = {"ROLE", "USER", "GROUP"}
_ROLE_OPTIONS = {
    *("WITH", "LOGIN", "NOLOGIN", "INHERIT", "NOINHERIT", "NOSUPERUSER", "NOCREATEDB", "NOCREATEROLE"),
    *("NOREPLICATION", "NOBYPASSRLS", "ENCRYPTED", "PASSWORD", "NULL", "CONNECTION", "LIMIT", "VALID", "UNTIL"),
}
"""Options of a new role that give it no power over other roles."""
_SERVER_WIDE_KINDS = frozenset({"DATABASE", "FOREIGN", "LANGUAGE", "LARGE", "PARAMETER", "TABLESPACE"})
"""Kinds of objects that do not belong to one database only."""
_REASONS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE"), _TRANSACTION),
    **dict.fromkeys(("SET", "RESET", "DISCARD"), _SETTINGS),
    **dict.fromkeys(("LISTEN", "UNLISTEN", "NOTIFY"), _NOTIFICATIONS),
    **dict.fromkeys(("PREPARE", "EXECUTE", "DEALLOCATE"), _PREPARED),
    **dict.fromkeys(("DECLARE", "FETCH", "MOVE", "CLOSE"), _CURSORS),
    **dict.fromkeys(("VACUUM", "CHECKPOINT", "CLUSTER", "LOAD"), _MAINTENANCE),
    **dict.fromkeys(("REASSIGN", "SECURITY"), (_RIGHTS, _USE_PSQL)),
    "IMPORT": ("foreign tables are up to the operator, because they connect to other servers", _USE_PSQL),
    "COPY": ("it reads or writes files, or uses the connection itself", "Use import_csv, or export."),
    "DO": (
        "it would run the code in a string, which is not checked",
        "Run the statements themselves, or put them in a function.",
    ),
    "LOCK": ("the statements of a call take the locks that they need", ""),
}


class AllowedDdl(NamedTuple):
    """What the operator lets clients manage in addition to tables and the objects that belong to them."""

    policies: bool = False
    """Policies, and row-level security itself."""
    grants: bool = False
    """Permissions on objects in the database."""
    extensions: frozenset[str] = frozenset()
    """The names of extensions."""
    roles: bool = False
    """Roles without power over other roles."""


NO_MORE_DDL = AllowedDdl()


def parse_allowed(values: Sequence[str]) -> AllowedDdl:
    """Parse the values of `--allow-ddl`. Raises ValueError."""
    extensions = {value.partition("=")[2] for value in values if value.startswith("extension=")}
    kinds = ("policies", "grants", "roles")
    if unknown := [value for value in values if value not in kinds and not value.startswith("extension=")]:
        raise ValueError(f"{unknown[0]!r} is not one of policies, grants, roles and extension=NAME")
    if "" in extensions:
        raise ValueError("extension= has no name after it")
    return AllowedDdl("policies" in values, "grants" in values, frozenset(extensions), "roles" in values)


def check_change(sql: str, allowed: AllowedDdl = NO_MORE_DDL) -> Words:
    """Check that a client may run the statement, and return its tokens as words.

    Unquoted words are in capitals, other tokens as written; comments and leading parentheses are left out. Raises
    SqlError with code `refused`.
    """
    statement = Statement(sql)
    texts = ((token, statement.text(token)) for token in statement.tokens)
    all_words = [text.upper() if token.kind == "word" else text for token, text in texts]
    # A query may be in parentheses, as in (SELECT 1) UNION (SELECT 2).
    words: Words = [*dropwhile(lambda word: word[0] == "(", all_words)] or all_words
    if words[0] in _SCHEMA_WORDS:
        _check_definition(words, allowed)
    elif words[0] in ("GRANT", "REVOKE"):
        if "ON" not in words:
            raise _make_refusal("role membership is the operator's decision", _USE_PSQL)
        kind = words[words.index("ON") + 1 :][:1]
        if _SERVER_WIDE_KINDS.intersection(kind):
            raise _make_refusal(
                f"rights on {kind[0]} are up to the operator, because they affect more than one database", _USE_PSQL
            )
        _require(allowed.grants, _RIGHTS, "grants")
    elif words[0] not in _DATA_WORDS | _OTHER_WORDS and [*words[:2]] != ["SET", "CONSTRAINTS"]:
        # SET CONSTRAINTS is allowed, since it is the only form of SET that affects only the transaction.
        if words[0] == "SET":
            name = next((word for word in words[1:] if word not in ("LOCAL", "SESSION")), "").strip('"').upper()
            raise _make_refusal(_SETTINGS[0], _SETTING_SUGGESTIONS.get(name, _SETTINGS[1]))
        raise _make_refusal(*_REASONS.get(words[0], ("this tool does not run statements of this kind", "")))
    _check_permanent(words)
    # A name of the form U&"..." may contain escapes, so it can't be checked.
    if any(token.kind == "unicode" for token in statement.tokens):
        raise _make_refusal('it contains a name of the form U&"…"', 'Write the name in plain quotes: "…".')
    _check_calls(statement.find_calls())
    # The body of a function is a string that contains its calls.
    if not _ROUTINES.isdisjoint(words):
        bodies = (word for word in words if word[0] in "'$eE")
        _check_calls(name.lower() for body in bodies for name in _CALL.findall(body))
    return words


def _check_calls(names: Iterable[str]) -> None:
    for name in names:
        if name not in _SEQUENCE_FUNCTIONS and (effect := find_reason(name)) is not None:
            raise _make_refusal(f"{name}() {effect}")


def check_table(words: Words) -> None:
    """Raise SqlError with code `refused` unless the statement creates a permanent table, and nothing else."""
    kind = [word for word in words[1:3] if word != "UNLOGGED"]
    if words[0] != "CREATE" or kind[:1] != ["TABLE"]:
        raise SqlError("refused", "the statement is not a CREATE TABLE", "Use read_query or write_query.")


def changes_schema(words: Words) -> bool:
    """Return True if a statement that begins with these words changes the schema or permissions."""
    return words[0] in _SCHEMA_WORDS or words[0] in ("GRANT", "REVOKE")


def _check_definition(words: Words, allowed: AllowedDdl) -> None:
    verb, *rest = words
    if verb == "COMMENT":
        rest = [word for word in rest if word != "ON"]
    while verb == "CREATE" and rest and rest[0] in _MODIFIERS:
        del rest[0]
    kind = rest[0] if rest else ""
    if kind == "EXTENSION":
        _check_extension(verb, rest[1:], allowed)
    elif kind in _ROLE_KINDS and rest[1:2] != ["MAPPING"]:
        _check_role(verb, rest[1:], allowed)
    elif kind == "POLICY":
        _require(allowed.policies, _POLICIES, "policies")
    elif (verb, *rest[:2]) == ("ALTER", "DEFAULT", "PRIVILEGES"):
        _require(allowed.grants, _RIGHTS, "grants")
    elif kind not in (_COMMENTABLE_KINDS if verb == "COMMENT" else _OBJECT_KINDS):
        subject = f"{verb} {kind}" if kind.isalpha() else verb
        raise _make_refusal(
            f"{subject} is up to the operator, because it affects more than the tables of one database", _USE_PSQL
        )
    elif verb != "COMMENT":
        _check_privileges(kind, rest, allowed)


def _check_permanent(words: Words) -> None:
    """Raise SqlError for a statement whose effect would be reported as committed, but would be gone after the call:
    it creates a temporary object, or changes a setting by an UPDATE of pg_settings."""
    for position, word in enumerate(words):
        if word == "UPDATE":
            names = [
                name.strip('"').upper() for name in words[position + 1 : position + 5] if name not in (".", "ONLY")
            ]
            if "PG_SETTINGS" in names[:2]:
                raise _make_refusal(*_SETTINGS)
    creates_temporary = words[0] == "CREATE" and not _TEMPORARY.isdisjoint(words[1:4])
    selects_into_temporary = any(
        before in _BEFORE_TEMPORARY and word in _TEMPORARY for before, word in pairwise(words)
    )
    if (creates_temporary and not _contains(words, "ON", "COMMIT", "DROP")) or selects_into_temporary:
        reason = "temporary objects end with the call, which is one transaction"
        raise _make_refusal(reason, "Create a permanent table, or add ON COMMIT DROP if a later statement needs it.")


def _check_privileges(kind: str, words: Words, allowed: AllowedDdl) -> None:
    if _contains(words, "OWNER", "TO"):
        raise _make_refusal("ownership is the operator's decision", _USE_PSQL)
    if _contains(words, "ROW", "LEVEL", "SECURITY"):
        _require(allowed.policies, _POLICIES, "policies")
    if kind == "SCHEMA" and "GRANT" in words:
        _require(allowed.grants, _RIGHTS, "grants")
    if kind not in _ROUTINES:
        return
    if _contains(words, "SECURITY", "DEFINER"):
        raise _make_refusal("a function with SECURITY DEFINER gives its rights to others", _USE_PSQL)
    for name, language in pairwise(words):
        if name == "LANGUAGE" and language.strip("\"'").upper() not in _LANGUAGES:
            raise _make_refusal("functions can be created in SQL and PL/pgSQL only")


def _check_role(verb: str, words: Words, allowed: AllowedDdl) -> None:
    """Raise SqlError unless the statement creates a role without power over others, or drops roles. `words` are the
    words after ROLE."""
    _require(allowed.roles, _ROLES, "roles")
    if verb == "ALTER":
        raise _make_refusal("roles can be created and dropped, but not altered", _USE_PSQL)
    options = words[1:] if verb == "CREATE" else ()
    for word in options:
        if (word[0].isalpha() or word[0] == '"') and word not in _ROLE_OPTIONS:
            raise _make_refusal(f"a new role with {word} could act as other roles", _USE_PSQL)


def _check_extension(verb: str, words: Words, allowed: AllowedDdl) -> None:
    """Raise SqlError unless all extensions in the statement are allowed. `words` are the words after EXTENSION."""
    names = [word for word in words if word not in ("IF", "NOT", "EXISTS")]
    if verb == "DROP":
        names = [word for word in names if word not in (",", "CASCADE", "RESTRICT")]
    for name in names if verb == "DROP" else names[:1]:
        folded = name[1:-1] if name[0] == '"' else name.lower()
        _require(folded in allowed.extensions, "extensions are chosen by the operator", f"extension={folded}")
    if verb == "CREATE" and "CASCADE" in words:
        raise _make_refusal("CASCADE would create extensions that it does not name", "Create each by name.")
    if verb == "ALTER" and names[1:2] not in (["UPDATE"], ["SET"]):
        raise _make_refusal("objects that belong to an extension can't be changed", "Use UPDATE, or SET SCHEMA.")


def _require(is_allowed: bool, reason: str, subject: str) -> None:
    if not is_allowed:
        raise _make_refusal(reason, f"The operator can allow it with --allow-ddl {subject}.")


def _contains(words: Words, *terms: str) -> bool:
    size = len(terms)
    return any(tuple(words[position : position + size]) == terms for position in range(len(words) - size + 1))


def _make_refusal(reason: str, suggestion: str = "") -> SqlError:
    return SqlError("refused", f"the statement is not allowed: {reason}", suggestion)
