"""Examines the text of statements: their words, their parameters, and whether they may be run for reading.

A read-only transaction prevents a reading statement from changing tables. So the text is examined only for effects
that the transaction does not prevent, and so that a refusal can be explained before the statement is sent. It is
split into tokens as PostgreSQL does (section 4.1 of the manual) with `standard_conforming_strings` on, which every
transaction sets.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from servers.common.sql.errors import SqlError
from servers.common.sql.texts import DESCRIBE_HINT, asks_for_schema

from .denied_functions import find_reason

CURSOR_WORDS = frozenset({"SELECT", "WITH", "VALUES", "TABLE"})
"""The first words of queries whose rows a cursor can return."""

_READING_WORDS = CURSOR_WORDS | {"EXPLAIN", "SHOW"}
_KNOWN_WORDS = _READING_WORDS | frozenset(
    (
        *("ALTER", "ANALYZE", "CALL", "CLUSTER", "COMMENT", "CREATE", "DELETE", "DO", "DROP", "GRANT", "INSERT"),
        *("MERGE", "REFRESH", "REINDEX", "REVOKE", "SET", "TRUNCATE", "UPDATE", "VACUUM"),
    )
)
_WRITING_WORDS = _KNOWN_WORDS - _READING_WORDS - {"CLUSTER", "DO", "SET", "VACUUM"}
"""The first words of statements that a tool that changes the database may run."""
_CHANGE_WORDS = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE"})
_WORDS_AFTER = {"INSERT": "INTO", "DELETE": "FROM", "MERGE": "INTO"}
"""The second words of statements that change rows."""
_MAIN_WORDS = CURSOR_WORDS - {"WITH"}
"""The first words of the main query after WITH."""
_EXPLAINABLE = CURSOR_WORDS | _CHANGE_WORDS | {"CREATE", "DECLARE", "EXECUTE", "REFRESH"}
_MAX_LENGTH = 1_000_000
"""Maximum length of a statement, in characters."""
_ROUTINE = re.compile(r"CREATE (?:OR REPLACE )?(?:FUNCTION|PROCEDURE)\b")
"""The beginning of statements that may contain statements in their body (BEGIN ATOMIC)."""
_MAX_NAME_LENGTH = 100
"""Maximum number of characters of a word that an error repeats."""
# Every repetition is possessive, so the regular expression never backtracks, and takes linear time.
_TOKEN = re.compile(
    r"""(?P<space>(?:\s++|--[^\n\r]*+)++)
    |(?P<comment>/\*)
    |(?P<string>(?P<escapes>[eE])?'(?(escapes)(?:[^'\\]++|\\.|'')*+|(?:[^']++|'')*+)(?P<closed>')?)
    |(?P<unicode>[uU]&"(?:[^"]++|"")*+"?)
    |(?P<quoted>"(?:[^"]++|"")*+(?P<ended>")?)
    |(?P<dollar>\$(?:[A-Za-z_\x80-\U0010ffff][\w\x80-\U0010ffff]*+)?\$)
    |(?P<word>[A-Za-z_\x80-\U0010ffff][\w$\x80-\U0010ffff]*+)
    |(?P<parameter>\$\d++)
    |(?P<number>\.?\d[\d_.]*+(?:[eE][+-]?\d++)?+)
    |(?P<cast>::|:=)
    |(?P<named>:[A-Za-z_]\w*+)
    |(?P<end>;)
    |(?P<symbol>\(++|[)\[\]{},=<>*+%^~!@\#&|?]++|.)""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_OPERAND_END = re.compile(r"""[\w)\]"']""")
_COMMENT_MARK = re.compile(r"/\*|\*/")
# The rest of an E'' string after white space that contains a line ending, which has escapes like its beginning.
_CONTINUATION = re.compile(
    r"""(?:[\ \t\f\v]|--[^\n\r]*+(?=[\n\r]))*+[\n\r](?:\s++|--[^\n\r]*+[\n\r])*+
    '(?:[^'\\]++|\\.|'')*+(?P<closed>')?""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)


class ChangeError(SqlError):
    """Raised by a reading tool for a statement that changes the database."""

    def __init__(self, reason: str) -> None:
        super().__init__("refused", f"the statement is not allowed: {reason}")


class Token(NamedTuple):
    """A part of a statement."""

    kind: str
    """word, quoted, unicode (U&"), string, parameter ($1), named (:name), number, cast, end (;) or symbol."""
    start: int
    end: int


class Statement:
    """The text of one statement, split into tokens. Raises SqlError with code `bad_statement` if it is malformed."""

    def __init__(self, sql: str) -> None:
        if len(sql) > _MAX_LENGTH:
            raise SqlError("too_large", f"the statement has more than {_MAX_LENGTH:,} characters")
        self.sql = sql
        self.tokens = [*_tokenize(sql)]
        while self.tokens and self.tokens[-1].kind == "end":
            self.tokens.pop()
        if next(_find_ends(sql, self.tokens), None) is not None:
            raise SqlError("bad_statement", "there is more than one statement", "Run them one by one.")
        if not self.tokens:
            raise SqlError("bad_statement", "there is no statement")

    @property
    def body(self) -> str:
        """The text up to its last token, without semicolons and comments after it."""
        return self.sql[: self.tokens[-1].end]

    @property
    def first_word(self) -> str:
        """The first word after any parentheses, in capitals; empty if there is another token instead."""
        for token in self.tokens:
            if self.sql[token.start] != "(":
                return self.text(token).upper() if token.kind == "word" else ""
        return ""

    def text(self, token: Token) -> str:
        """Return the token as written."""
        return self.sql[token.start : token.end]

    def find_calls(self) -> Iterator[str]:
        """Yield all names before an opening parenthesis; the called functions are among them. Names have no schema,
        and are in lowercase unless quoted, as PostgreSQL interprets them."""
        for token, after in zip(self.tokens, self.tokens[1:], strict=False):
            if token.kind in ("word", "quoted") and self.sql[after.start] == "(":
                text = self.text(token)
                yield text.lower() if token.kind == "word" else text[1:-1].replace('""', '"')

    @property
    def explained_word(self) -> str:
        """The first word of the statement that EXPLAIN explains, in capitals."""
        words = (self.text(token).upper() for token in self.tokens if token.kind == "word")
        return next((word for word in words if word in _EXPLAINABLE), "")

    def find_change(self) -> str | None:
        """Return the keyword in a query that changes rows or creates a table (INTO); None if the query only reads."""
        for before, token, after in zip(self.tokens, self.tokens[1:], self.tokens[2:], strict=False):
            word = self.text(token).upper() if token.kind == "word" else ""
            # INTO is a name only after AS or a dot.
            if word == "INTO" and self.text(before).upper() not in ("AS", "."):
                return word
            if self.sql[before.end - 1] == "(" and self._begins_change(word, after):
                return word
        # The main statement, for example after WITH, begins with the first of these words outside parentheses.
        depth = 0
        for token, after in zip(self.tokens, self.tokens[1:], strict=False):
            text = self.text(token).upper()
            if token.kind == "symbol":
                depth += text.count("(") - text.count(")")
            elif depth or token.kind != "word" or self.text(after).upper() == "AS":
                continue
            elif self._begins_change(text, after):
                return text
            elif text in _MAIN_WORDS:
                return None
        return None

    def _begins_change(self, word: str, after: Token) -> bool:
        """Return True if a statement that changes rows begins with the `word`, in capitals, before the token `after`.
        Otherwise the word is a name, such as that of a column `update`."""
        if word == "UPDATE":
            return after.kind in ("word", "quoted") and self._has_set
        return self.text(after).upper() == _WORDS_AFTER.get(word)

    @cached_property
    def _has_set(self) -> bool:
        """True if SET occurs in it, as in every UPDATE."""
        return any(token.kind == "word" and self.text(token).upper() == "SET" for token in self.tokens)


def check_reads(sql: str) -> Statement:
    """Return the statement if it may be run for reading. Otherwise raise SqlError with code `refused` and the
    reason."""
    if asks_for_schema(sql):
        raise _make_refusal("PostgreSQL has no such command", DESCRIBE_HINT)
    statement = Statement(sql)
    word = statement.first_word
    if word in _WRITING_WORDS:
        raise ChangeError(f"it begins with {word}, which changes the database")
    if word not in _READING_WORDS:
        reason = f"it begins with {word[:_MAX_NAME_LENGTH]}" if word else "it does not begin with a word"
        raise _make_refusal(reason, "Statements that read begin with SELECT, WITH, VALUES, TABLE, EXPLAIN or SHOW.")
    if word == "EXPLAIN" and statement.explained_word not in CURSOR_WORDS:
        raise _make_refusal("the statement that it explains changes the database", "Use explain_query.")
    if any(token.kind == "unicode" for token in statement.tokens):
        raise _make_refusal('it contains a name of the form U&"…"', 'Write the name in plain quotes: "…".')
    for name in statement.find_calls():
        if (effect := find_reason(name)) is not None:
            raise _make_refusal(f"{name}() {effect}", "Omit it.")
    if (change := statement.find_change()) is not None:
        raise ChangeError(f"its {change} changes the database")
    return statement


def _make_refusal(reason: str, suggestion: str) -> SqlError:
    return SqlError("refused", f"the statement is not allowed: {reason}", suggestion)


def find_kind(sql: str) -> str:
    """Return the first word of a statement, or "OTHER" if it is not a keyword that begins statements."""
    try:
        first = next((token for token in _tokenize(sql) if sql[token.start] != "("), None)
    except SqlError:
        return "OTHER"
    word = "" if first is None else sql[first.start : first.end].upper()
    return word if word in _KNOWN_WORDS else "OTHER"


def find_name(sql: str, position: int) -> str | None:
    """Return the name that begins at `position`, that of an error, without its schema and in lowercase unless quoted;
    None if no name begins there."""
    name, end = None, position
    try:
        for token in _tokenize(sql):
            if token.start < position:
                continue
            text = sql[token.start : token.end]
            if token.start != end or (text != "." and token.kind not in ("word", "quoted")):
                break
            if text != ".":
                name = text.lower() if token.kind == "word" else text[1:-1].replace('""', '"')
            end = token.end
    except SqlError:
        return None
    return name


def split_statements(script: str) -> list[str]:
    """Split a script into statements without the semicolons between them. Raises SqlError with code
    `bad_statement`."""
    tokens = [*_tokenize(script)]
    ends = [*_find_ends(script, tokens), len(tokens)]
    parts = [tokens[start:end] for start, end in zip((0, *(end + 1 for end in ends)), ends, strict=False)]
    return [script[part[0].start : part[-1].end] for part in parts if part]


def _find_ends(sql: str, tokens: Sequence[Token]) -> Iterator[int]:
    """Yield the positions of the tokens that end a statement.

    These are semicolons outside parentheses and function bodies, as in psql (psqlscan.l).
    """
    depth = nesting = 0
    words: list[str] = []
    for position, token in enumerate(tokens):
        if token.kind == "symbol":
            text = sql[token.start : token.end]
            depth += text.count("(") - text.count(")")
        elif token.kind == "word":
            word = sql[token.start : token.end].upper()
            words = [*words, word][:4]
            if nesting or (word == "BEGIN" and depth <= 0 and _ROUTINE.match(" ".join(words))):
                # CASE has its own END.
                nesting += {"BEGIN": 1, "CASE": 1, "END": -1}.get(word, 0)
        elif token.kind == "end" and depth <= 0 and not nesting:
            yield position
            depth, words = 0, []


def find_parameters(sql: str) -> list[str]:
    """Return the parameters of a statement as written in it, `:name` or `$1`, each once."""
    parameters = (sql[token.start : token.end] for token in _tokenize(sql) if token.kind in ("named", "parameter"))
    return [*dict.fromkeys(parameters)]


def bind_named(sql: str, values: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """Return the statement with numbers, such as `$1`, instead of names, such as `:name`, and the values in the order
    of the numbers.

    Raises SqlError with code `bad_parameters` if a value is missing or unused.
    """
    numbered, names = number_names(sql)
    values_by_name = {name.removeprefix(":"): value for name, value in values.items()}
    if missing := sorted({*names} - values_by_name.keys()):
        raise SqlError("bad_parameters", f"there is no value for :{missing[0][:_MAX_NAME_LENGTH]}")
    if unused := sorted(values_by_name.keys() - {*names}):
        raise SqlError("bad_parameters", f"the statement has no :{unused[0][:_MAX_NAME_LENGTH]}")
    return numbered, [values_by_name[name] for name in names]


def number_names(sql: str) -> tuple[str, list[str]]:
    """Return the statement with numbers, such as `$1`, instead of names, such as `:name`, and the names in the order
    of the numbers."""
    numbers: dict[str, int] = {}
    parts: list[str] = []
    position = 0
    for token in _tokenize(sql):
        if token.kind != "named":
            continue
        number = numbers.setdefault(sql[token.start + 1 : token.end], len(numbers) + 1)
        parts += [sql[position : token.start], f"${number}"]
        position = token.end
    return "".join((*parts, sql[position:])), [*numbers]


def _tokenize(sql: str) -> Iterator[Token]:
    """Yield the tokens, without white space and comments. Raises SqlError `bad_statement` if one is unterminated."""
    position = brackets = 0
    while position < len(sql):
        match = _TOKEN.match(sql, position)
        if match is None or match.lastgroup is None:
            return
        kind, end = match.lastgroup, match.end()
        if kind == "symbol":
            brackets += match[0].count("[") - match[0].count("]")
        elif kind == "named" and brackets > 0 and _OPERAND_END.match(sql, position - 1):
            # The colon of an array slice, as in list[1:size].
            kind, end = "symbol", position + 1
        if kind == "comment":
            end = _end_comment(sql, end)
        elif kind == "string":
            end = _end_string(sql, match)
        elif kind == "dollar":
            closing = sql.find(match[0], end)
            if closing < 0:
                raise _make_unclosed_error("a string")
            kind, end = "string", closing + len(match[0])
        elif kind == "quoted" and match["ended"] is None:
            raise _make_unclosed_error("a name in quotes")
        if kind not in ("space", "comment"):
            yield Token(kind, position, end)
        position = end


def _end_comment(sql: str, end: int) -> int:
    """Return the end of the comment whose opening mark is before `end`. Comments can be nested."""
    depth = 1
    while depth:
        mark = _COMMENT_MARK.search(sql, end)
        if mark is None:
            raise _make_unclosed_error("a comment")
        depth += 1 if mark[0] == "/*" else -1
        end = mark.end()
    return end


def _end_string(sql: str, match: re.Match[str]) -> int:
    """Return the end of the string with this beginning. Strings with escapes may continue on another line."""
    part: re.Match[str] | None = match
    end = match.end()
    while part is not None:
        if part["closed"] is None:
            raise _make_unclosed_error("a string")
        end = part.end()
        part = _CONTINUATION.match(sql, end) if match["escapes"] else None
    return end


def _make_unclosed_error(subject: str) -> SqlError:
    return SqlError("bad_statement", f"{subject} in the statement is not closed")
