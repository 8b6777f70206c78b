"""Determines the types of a file's columns from all of its rows.

A reading is a way to convert the fields of a column to values (see `readings`). A column keeps each possible reading
until a field contradicts it. The decimal mark is determined at the end of the file, by the columns that allow only
one mark. If two readings of a column are possible and nothing decides between them, the column stays text.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from ..errors import SqlError
from .readings import (
    ALL_READINGS,
    BOOLEAN,
    COMMA,
    DATES,
    DAY_FIRST,
    DAY_FIRST_TIME,
    FORMULA,
    INTEGER,
    INTEGER_WITH_ZEROS,
    LOOSE_BOOLEAN,
    MONTH_FIRST,
    MONTH_FIRST_TIME,
    NO_VALUE,
    NULL_MARKS,
    NUMBERS,
    NUMBERS_BY_MARK,
    POINT,
    SEPARATOR,
    TIMESTAMPS,
    TIMESTAMPTZ,
    Kind,
    Reading,
    join_fields,
)

_MIXED_SHARE = 0.5
"""A text column with at least this share of number-like fields is reported as mixed."""
_LIKE_NUMBER = re.compile(r"[ \d.,'’+()/:eE$€£¥₹%-]*\d[ \d.,'’+()/:eE$€£¥₹%-]*", re.ASCII)
_MIXED = "mixed with text"
_REASONS: Sequence[tuple[re.Pattern[str], str]] = (
    (re.compile(r" *[+-]?0\d+(?:[.,]\d*)? *", re.ASCII), "leading zeros"),
    (re.compile(r" *\+[\d ()/.-]+", re.ASCII), "a plus sign, as in phone numbers"),
    (re.compile(r" *[+-]?\d{16,} *", re.ASCII), "more digits than a number can keep"),
    (re.compile(r"[^a-z]*[$€£¥₹%][^a-z]*", re.IGNORECASE), "a currency or percent sign"),
    (re.compile(r".*", re.DOTALL), _MIXED),
)
_LONG_FIELD = 19
"""Minimum length of a decimal of 18 digits, in characters."""
_LONG_NUMBER = re.compile(r" *[+-]?[0.,]*[1-9](?:[.,]?\d){17}", re.ASCII)
_BARE_EXPONENT = re.compile(rf"(?:^|{SEPARATOR}) *-?\d+[eE]\d", re.ASCII)
_TENTH = re.compile(rf"[.,][1-9] *{SEPARATOR}")
_PADDED = re.compile(rf"[.,][1-9]0 *{SEPARATOR}")
"""Match decimals like 3.9 (`_TENTH`) and like 3.10 (`_PADDED`). Programs never write both in one column of numbers,
so a column with both contains version numbers."""
DAY_OR_MONTH = "dates whose day and month can't be told apart"
"""The start of the note on a column that stays text, because it is unclear whether the day or the month comes first.
The types that decide it follow."""
_SPECIFY_MARK = 'specify "." or "," as decimal'
_MAX_FIELD = 30
"""Maximum length of a field in a result, in characters."""
_MIN_VALUES_WITH_COMMA = 2
"""In a file whose fields are separated by commas, this many different values such as 1,234 show that the comma is a
thousands separator: it is unlikely that all of them are decimals with three digits after the comma."""

_READINGS_OF_TYPES: Mapping[str, tuple[Kind, Sequence[Reading]]] = {
    "text": ("text", ()),
    "integer": ("integer", (INTEGER_WITH_ZEROS,)),
    "decimal": ("decimal", (INTEGER_WITH_ZEROS,)),
    "date": ("date", DATES),
    "date dmy": ("date", (DAY_FIRST,)),
    "date mdy": ("date", (MONTH_FIRST,)),
    "timestamp": ("timestamp", TIMESTAMPS),
    "timestamp dmy": ("timestamp", (DAY_FIRST_TIME,)),
    "timestamp mdy": ("timestamp", (MONTH_FIRST_TIME,)),
    "timestamptz": ("timestamptz", (TIMESTAMPTZ,)),
    "boolean": ("boolean", (BOOLEAN, LOOSE_BOOLEAN)),
}
_SYNONYMS = {"real": "decimal", "numeric": "decimal", "bigint": "integer"}


N = TypeVar("N", str, None)


class Column(NamedTuple):
    """A column of a file: its name, its type, and how its fields are read."""

    name: str
    kind: Kind = "text"
    reading: Reading | None = None
    """How the fields are read; None for text."""
    nulls: frozenset[str] = frozenset({""})
    """The fields that stand for a missing value (NULL)."""
    note: str = ""
    """The reason why the column stays text although it looks like numbers or dates, or what its reading changes."""

    def convert(self, fields: Sequence[str], null: N) -> list[str | N]:
        """Return the fields in the form that database engines accept, with `null` for missing values."""
        nulls = self.nulls
        if self.reading is None or self.reading.rewrite is None:
            return [null if field in nulls else field for field in fields]
        rewrite = self.reading.rewrite
        return [null if field in nulls else rewrite(field) for field in fields]


class DecimalMark(NamedTuple):
    """The decimal mark of the numbers in a file."""

    mark: str
    """The mark, "." or ","; "" if nothing determines it, or if columns determine different ones."""
    is_sure: bool = True
    """True if a column or the client determines the mark; False if it is only assumed or unknown."""


class ColumnSurvey:
    """The possible readings of one column, given the fields so far."""

    def __init__(self, nulls: frozenset[str] | None) -> None:
        """`nulls` are the null marks that the client gives, which also apply to text columns."""
        self.is_empty = True
        """True if every field so far is a null mark."""
        self.null_counts: dict[str, int] = {}
        """How often each null mark occurs, except the empty field."""
        self.text_null_count = 0
        """How often `NO_VALUE` occurs, which is NULL in a column of text as well."""
        self.readings: Sequence[Reading] = ALL_READINGS
        self._null_marks = NULL_MARKS if nulls is None else nulls
        self._text_nulls = frozenset({"", NO_VALUE}) if nulls is None else nulls | {""}
        self._has_point = self._has_comma = self._has_bare_exponent = self._is_long = False
        self._has_tenth = self._has_padded = False
        self._contradiction = ""
        self._with_comma: set[str] = set()

    def add(self, fields: Sequence[str], first_row: int) -> None:
        """Drop the readings that contradict these fields. `first_row` is the row number of the first field."""
        if NO_VALUE in fields and NO_VALUE in self._text_nulls:
            self.text_null_count += fields.count(NO_VALUE)
        if not self.readings:
            return
        joined = join_fields(fields)
        readings = self._find_matching(fields, joined)
        values = fields
        if not readings:
            values = [field for field in fields if field.strip() and field.strip() not in self._null_marks]
            joined = join_fields(values) if values else ""
            readings = self._find_matching(values, joined) if values else self.readings
        if any(map(_is_automatic, self.readings)) and not any(map(_is_automatic, readings)):
            self._contradiction = self._find_contradiction(fields, values, first_row)
        if not readings:
            self.readings = ()
            self.is_empty = False
            self.null_counts.clear()
            return
        if values is not fields:
            for field in sorted(set(fields).difference(values, {""}), key=fields.index):
                self.null_counts[field] = self.null_counts.get(field, 0) + fields.count(field)
        if len(joined) > len(values):
            self.is_empty = False
            self.readings = readings
            self._record_digits(values, joined)

    def _find_matching(self, fields: Sequence[str], joined: str) -> Sequence[Reading]:
        # If the numbers differ, a field contains the separator, and would count as two fields.
        if joined.count(SEPARATOR) != len(fields):
            return ()
        matching: set[Reading] = set()
        for reading in self.readings:
            if reading not in matching and reading.matches(fields, joined):
                matching |= {reading, *reading.wider}
        return (
            self.readings if len(matching) == len(self.readings) else [*filter(matching.__contains__, self.readings)]
        )

    def _record_digits(self, fields: Sequence[str], joined: str) -> None:
        self._has_point = self._has_point or "." in joined
        self._has_comma = self._has_comma or "," in joined
        if not self._has_point and ("e" in joined or "E" in joined):
            self._has_bare_exponent = self._has_bare_exponent or _BARE_EXPONENT.search(joined) is not None
        if self._has_point or self._has_comma:
            self._has_tenth = self._has_tenth or _TENTH.search(joined) is not None
            self._has_padded = self._has_padded or _PADDED.search(joined) is not None
        if POINT not in self.readings and COMMA in self.readings and len(self._with_comma) < _MIN_VALUES_WITH_COMMA:
            self._with_comma.update(field.strip() for field in fields if "," in field)
        # Check only numbers, since dates can be as long. Readings of numbers come first in `readings`.
        if not self._is_long and self.readings[0] in NUMBERS and max(map(len, fields)) >= _LONG_FIELD:
            self._is_long = any(_LONG_NUMBER.match(field) for field in fields if len(field) >= _LONG_FIELD)

    def _find_contradiction(self, fields: Sequence[str], values: Sequence[str], first_row: int) -> str:
        """Return a sentence with the field that makes the column text and the reason; "" if most of the first fields
        are text anyway, or all of them are something else, such as times."""
        texts = [field for field in values if not _LIKE_NUMBER.fullmatch(field)]
        if self.is_empty and len(texts) > len(values) * _MIXED_SHARE:
            return ""
        candidates = [*filter(_is_automatic, self.readings)]
        unreadable = [
            value
            for value in values
            if not any(reading.matches([value], join_fields([value])) for reading in candidates)
        ]
        contradicting = [*unreadable, *texts, values[0]][0]
        reason = next(words for pattern, words in _REASONS if pattern.fullmatch(contradicting))
        if reason == _MIXED and self.is_empty and len(unreadable) == len(values):
            return ""
        return f"{reason}: {shorten(contradicting)!r} in row {first_row + fields.index(contradicting):,}"

    @property
    def only_mark(self) -> str | None:
        """The only decimal mark with which the column can be numbers; None if both marks are possible or neither is,
        or if the numbers have no mark."""
        if INTEGER in self.readings:
            return None
        marks = [
            mark
            for mark, readings in NUMBERS_BY_MARK.items()
            if any(reading in self.readings for reading in readings)
        ]
        return marks[0] if len(marks) == 1 else None

    def decide(self, name: str, mark: DecimalMark, requested: str | None, *, is_new: bool = True) -> Column:
        """Return the column called `name`, given the decimal `mark` of the file.

        `requested` is the type that the client gives, if any. `is_new` is False if the table already has the column.
        Raises SqlError if the column can't be read as the requested type.
        """
        nulls = self._text_nulls | self.null_counts.keys()
        if requested is not None:
            kind, others = _READINGS_OF_TYPES[_SYNONYMS.get(requested, requested)]
            if kind == "text":
                return Column(name, nulls=self._text_nulls)
            if kind == "decimal" and self.is_ambiguous(mark):
                raise self.ambiguity_error(name)
            numbers = [
                reading for reading in NUMBERS_BY_MARK[mark.mark or "."] if reading.kind == kind or kind == "decimal"
            ]
            types = self._day_or_month_types
            if types and requested in ("date", "timestamp"):
                raise SqlError("bad_csv", DAY_OR_MONTH, f"Specify the type {types}.", [f"column {name}"])
            for reading in (*(numbers if kind in ("integer", "decimal") else ()), *others):
                if reading in self.readings:
                    return Column(name, kind, reading, nulls)
            quoted = [f"column {name}", *filter(None, [self._contradiction])]
            raise SqlError("bad_csv", f"a column can't be read as {requested}", quoted=quoted)
        if self.is_empty or not self.readings:
            return Column(name, nulls=self._text_nulls, note=self._contradiction)
        reading, note = self._choose(mark, is_new)
        if reading is None:
            return Column(name, nulls=self._text_nulls, note=note or self._contradiction)
        return Column(name, reading.kind, reading, nulls, note)

    def _choose(self, mark: DecimalMark, is_new: bool) -> tuple[Reading | None, str]:
        """Return the best reading, or None for text, and a note for `Column.note`."""
        if any(reading in self.readings for reading in NUMBERS):
            if self.is_ambiguous(mark):
                return None, f"{self._ambiguity}: {_SPECIFY_MARK}"
            by_mark = {
                character: [*filter(self.readings.__contains__, readings)]
                for character, readings in NUMBERS_BY_MARK.items()
            }
            reading = (by_mark.get(mark.mark or ".") or by_mark["."] or by_mark[","])[0]
            if self._has_comma and all(by_mark.values()) and not mark.is_sure:
                return reading, "1,234 is read as 1234"
            is_new_decimal = is_new and reading.kind == "decimal"
            if is_new_decimal and self._has_bare_exponent and not self._has_point:
                return None, "codes or numbers, such as 1e5"
            if is_new_decimal and self._has_tenth and self._has_padded:
                return None, "versions or numbers, such as 3.9 and 3.10: specify the type decimal"
            return reading, "decimals of more than 17 digits" if reading.kind == "decimal" and self._is_long else ""
        if types := self._day_or_month_types:
            return None, f"{DAY_OR_MONTH}: specify the type {types}"
        others = (BOOLEAN, FORMULA, *DATES, *TIMESTAMPS, TIMESTAMPTZ)
        return next((reading for reading in others if reading in self.readings), None), ""

    @property
    def _day_or_month_types(self) -> str:
        """The types that decide whether the day or the month comes first; "" if the fields decide it."""
        if self.is_empty or not (DAY_FIRST_TIME in self.readings and MONTH_FIRST_TIME in self.readings):
            return ""
        kind = "date" if DAY_FIRST in self.readings and MONTH_FIRST in self.readings else "timestamp"
        return f"{kind} dmy or {kind} mdy"

    def is_ambiguous(self, mark: DecimalMark) -> bool:
        """Return True if the fields are numbers that may be 1234 or 1.234, and `mark` does not decide which."""
        allows_both = all(
            any(reading in self.readings for reading in readings) for readings in NUMBERS_BY_MARK.values()
        )
        if mark.is_sure or not allows_both or not (self._has_comma or self._has_point):
            return False
        is_decimal = self._has_point and not self._has_comma
        is_thousands = not self._has_point and len(self._with_comma) >= _MIN_VALUES_WITH_COMMA
        return not mark.mark or not (is_decimal or is_thousands)

    def ambiguity_error(self, name: str) -> SqlError:
        """Return the error for an ambiguous column that must be numbers."""
        return SqlError("bad_csv", self._ambiguity, f"{_SPECIFY_MARK.capitalize()}.", [f"column {name}"])

    @property
    def _ambiguity(self) -> str:
        return f"{'1,234' if self._has_comma else '1.234'} may be 1234 or 1.234"


def _is_automatic(reading: Reading) -> bool:
    """Return True if this reading can be chosen even if the client gives no type."""
    return reading not in (INTEGER_WITH_ZEROS, LOOSE_BOOLEAN)


def find_mark(surveys: Iterable[ColumnSurvey], requested: str | None, delimiter: str) -> DecimalMark:
    """Return the decimal mark of a file: the requested one, or else the one on which all columns agree that allow
    only one."""
    if requested is not None:
        return DecimalMark(requested)
    marks = {survey.only_mark for survey in surveys} - {None}
    if len(marks) == 1:
        return DecimalMark(marks.pop() or "")
    # If commas separate fields, a number with a decimal comma must be quoted, as in files of some banks. So the point
    # is only assumed.
    return DecimalMark("." if not marks and delimiter == "," else "", is_sure=False)


def parse_types(types: Iterable[str]) -> dict[str, str]:
    """Return the client's types, as in `zip=text`, by lowercase column name. Raises SqlError."""
    parsed: dict[str, str] = {}
    for entry in types:
        name, _, kind = entry.rpartition("=")
        parsed[name.strip().lower()] = type_name = kind.strip().lower()
        if _SYNONYMS.get(type_name, type_name) not in _READINGS_OF_TYPES:
            raise SqlError(
                "bad_csv",
                "there is no such column type",
                f"Available types: {', '.join(_READINGS_OF_TYPES)}.",
                [entry],
            )
    return parsed


def shorten(field: str) -> str:
    """Return a field, shortened for a result."""
    return field if len(field) <= _MAX_FIELD else f"{field[:_MAX_FIELD]}…"
