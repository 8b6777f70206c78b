"""What the columns of a file are: decided over all rows, never by the first ones alone.

A column keeps every way to read it until a field contradicts. Which decimal mark a file has is decided at its end, by
the columns that can be read in one way only. What can be read in two ways, and nothing decides, stays text.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from servers.common.sql.errors import SqlError
from servers.common.sql.importing.readings import (
    ALL,
    ANSWERS,
    BOOLEAN,
    BY_MARK,
    COMMA,
    DATE,
    DATES,
    DAY_FIRST,
    INTEGER,
    MONTH_FIRST,
    NULL_MARKS,
    NUMBERS,
    POINT,
    SEPARATOR,
    TIMESTAMP,
    TIMESTAMPTZ,
    YEAR_FIRST,
    ZEROS,
    Kind,
    Reading,
    join,
)

_MIXED = 0.5
"""The share of fields that are like numbers, from which a column of text is said to be mixed."""
_LIKE_NUMBER = re.compile(r"[ \d.,'’+()/:eE-]*\d[ \d.,'’+()/:eE-]*", re.ASCII)
_REASONS: Sequence[tuple[re.Pattern[str], str]] = (
    (re.compile(r" *[+-]?0\d.*", re.ASCII), "leading zeros"),
    (re.compile(r" *\+[\d ()/.-]+", re.ASCII), "a plus sign, as of phone numbers"),
    (re.compile(r" *[+-]?\d{16,} *", re.ASCII), "more digits than a number keeps"),
    (re.compile(r".*", re.DOTALL), "mixed with text"),
)
_LONG_FIELD = 19
"""Characters that a decimal of 18 digits has at least."""
_LONG = re.compile(r" *[+-]?[0.,]*[1-9](?:[.,]?\d){17}", re.ASCII)
_BARE_EXPONENT = re.compile(rf"(?:^|{SEPARATOR}) *-?\d+[eE]\d", re.ASCII)
DAY_OR_MONTH = "dates whose day and month can't be told apart: give the type date dmy or date mdy"
"""The note of a column of dates that are text for that reason."""
_GIVE_MARK = 'give "." or "," as decimal'
_SHOWN = 30
"""Characters of a field that is shown."""
_SEVERAL = 2
"""Different numbers such as 1,234 that make a comma a thousands separator where commas separate the fields as well:
decimals would all have three digits after it."""

_BY_NAME: Mapping[str, tuple[Kind, Sequence[Reading]]] = {
    "text": ("text", ()),
    "integer": ("integer", (ZEROS,)),
    "decimal": ("decimal", (ZEROS,)),
    "date": ("date", (DATE, YEAR_FIRST, DAY_FIRST, MONTH_FIRST)),
    "date dmy": ("date", (DAY_FIRST,)),
    "date mdy": ("date", (MONTH_FIRST,)),
    "timestamp": ("timestamp", (TIMESTAMP,)),
    "timestamptz": ("timestamptz", (TIMESTAMPTZ,)),
    "boolean": ("boolean", (BOOLEAN, ANSWERS)),
}
_SYNONYMS = {"real": "decimal", "numeric": "decimal", "bigint": "integer"}


N = TypeVar("N", str, None)


class Column(NamedTuple):
    """What a column of a file is."""

    name: str
    kind: Kind = "text"
    reading: Reading | None = None
    """How its fields are read; None for text."""
    nulls: frozenset[str] = frozenset({""})
    """The fields that mean no value."""
    note: str = ""
    """Why it stays text though it looks like numbers or dates, or what reading it changes."""

    def convert(self, fields: Sequence[str], null: N) -> list[str | N]:
        """Return the fields in the form that engines read, with `null` for no value."""
        nulls = self.nulls
        if self.reading is None or self.reading.rewrite is None:
            return [null if field in nulls else field for field in fields]
        rewrite = self.reading.rewrite
        return [null if field in nulls else rewrite(field) for field in fields]


class DecimalMark(NamedTuple):
    """What stands before the fraction of the numbers of a file."""

    mark: str
    """"." or ","; "" where nothing decides, or each column must by itself."""
    is_sure: bool = True
    """Whether a column or the client says so, and not the delimiter alone."""


class ColumnSurvey:
    """What the fields of one column can be, so far."""

    def __init__(self, nulls: frozenset[str] | None) -> None:
        """`nulls` are the marks that the client gives, which count in columns of text, too."""
        self.is_empty = True
        """Whether every field so far means no value."""
        self.marks: dict[str, int] = {}
        """How often each field that means no value was seen, besides the empty one."""
        self.readings: Sequence[Reading] = ALL
        self._marks = NULL_MARKS if nulls is None else nulls
        self._given = frozenset({""}) if nulls is None else nulls | {""}
        self._has_point = self._has_comma = self._has_bare_exponent = self._is_long = False
        self._contradiction = ""
        self._with_comma: set[str] = set()

    def look(self, fields: Sequence[str], first_row: int) -> None:
        """Take more fields into account, the first of which is of `first_row`."""
        if not self.readings:
            return
        joined = join(fields)
        readings = self._matching(fields, joined)
        kept = fields
        if not readings:
            kept = [field for field in fields if field.strip() and field.strip() not in self._marks]
            joined = join(kept) if kept else ""
            readings = self._matching(kept, joined) if kept else self.readings
        if any(map(_is_chosen, self.readings)) and not any(map(_is_chosen, readings)):
            self._contradiction = self._explain(fields, kept, first_row)
        if not readings:
            self.readings = ()
            self.is_empty = False
            self.marks.clear()
            return
        if kept is not fields:
            for field in sorted(set(fields).difference(kept, {""}), key=fields.index):
                self.marks[field] = self.marks.get(field, 0) + fields.count(field)
        if len(joined) > len(kept):
            self.is_empty = False
            self.readings = readings
            self._look_at_digits(kept, joined)

    def _matching(self, fields: Sequence[str], joined: str) -> Sequence[Reading]:
        # A field that holds the separator would be taken for two.
        if joined.count(SEPARATOR) != len(fields):
            return ()
        matching: set[Reading] = set()
        for reading in self.readings:
            if reading not in matching and reading.matches(fields, joined):
                matching |= {reading, *reading.wider}
        return (
            self.readings if len(matching) == len(self.readings) else [*filter(matching.__contains__, self.readings)]
        )

    def _look_at_digits(self, fields: Sequence[str], joined: str) -> None:
        self._has_point = self._has_point or "." in joined
        self._has_comma = self._has_comma or "," in joined
        if not self._has_point and ("e" in joined or "E" in joined):
            self._has_bare_exponent = self._has_bare_exponent or _BARE_EXPONENT.search(joined) is not None
        if POINT not in self.readings and COMMA in self.readings and len(self._with_comma) < _SEVERAL:
            self._with_comma.update(field.strip() for field in fields if "," in field)
        # Dates are as long, and come after numbers in the order of readings.
        if not self._is_long and self.readings[0] in NUMBERS and max(map(len, fields)) >= _LONG_FIELD:
            self._is_long = any(_LONG.match(field) for field in fields if len(field) >= _LONG_FIELD)

    def _explain(self, fields: Sequence[str], kept: Sequence[str], first_row: int) -> str:
        """Which field makes the column text, and why; "" where it was like text anyway."""
        unlike = [field for field in kept if not _LIKE_NUMBER.fullmatch(field)]
        if self.is_empty and len(unlike) > len(kept) * _MIXED:
            return ""
        before = [*filter(_is_chosen, self.readings)]
        wrong = next(
            (one for one in kept if not any(reading.matches([one], join([one])) for reading in before)),
            next(iter(unlike), kept[0]),
        )
        reason = next(words for pattern, words in _REASONS if pattern.fullmatch(wrong))
        return f"{reason}: {shorten(wrong)!r} in row {first_row + fields.index(wrong):,}"

    @property
    def sure_mark(self) -> str | None:
        """The decimal mark without which the column is no number; None where it tells nothing of that."""
        if INTEGER in self.readings:
            return None
        marks = [mark for mark, readings in BY_MARK.items() if any(one in self.readings for one in readings)]
        return marks[0] if len(marks) == 1 else None

    def decide(self, name: str, mark: DecimalMark, wanted: str | None) -> Column:
        """Return what the column is where decimals have `mark`.

        `wanted` is the type that the client gives. Raises SqlError where the column can't be read so.
        """
        nulls = self._given | self.marks.keys()
        if wanted is not None:
            return self._decide_as_wanted(name, mark, wanted, nulls)
        if self.is_empty or not self.readings:
            return Column(name, nulls=self._given, note=self._contradiction)
        reading, note = self._choose(mark)
        if reading is None:
            return Column(name, nulls=self._given, note=note or self._contradiction)
        return Column(name, reading.kind, reading, nulls, note)

    def _choose(self, mark: DecimalMark) -> tuple[Reading | None, str]:
        """The best reading, and a note."""
        if any(reading in self.readings for reading in NUMBERS):
            return self._choose_number(mark)
        if DAY_FIRST in self.readings and MONTH_FIRST in self.readings:
            return None, DAY_OR_MONTH
        return next((one for one in (BOOLEAN, *DATES) if one in self.readings), None), ""

    def _choose_number(self, mark: DecimalMark) -> tuple[Reading | None, str]:
        if self.is_open(mark):
            return None, f"{self._open_reason}: {_GIVE_MARK}"
        by_mark = {one: [*filter(self.readings.__contains__, readings)] for one, readings in BY_MARK.items()}
        reading = (by_mark.get(mark.mark or ".") or by_mark["."] or by_mark[","])[0]
        if self._has_comma and all(by_mark.values()) and not mark.is_sure:
            return reading, "1,234 is read as 1234"
        if reading.kind == "decimal" and self._has_bare_exponent and not self._has_point:
            return None, "codes or numbers, such as 1e5"
        return reading, "decimals of more than 17 digits" if reading.kind == "decimal" and self._is_long else ""

    def is_open(self, mark: DecimalMark) -> bool:
        """Whether the fields are numbers that may be 1234 or 1.234, and `mark` does not decide."""
        allows_both = all(any(one in self.readings for one in readings) for readings in BY_MARK.values())
        if mark.is_sure or not allows_both or not (self._has_comma or self._has_point):
            return False
        is_decimal = self._has_point and not self._has_comma
        is_thousands = not self._has_point and len(self._with_comma) >= _SEVERAL
        return not mark.mark or not (is_decimal or is_thousands)

    def refuse_open(self, name: str) -> SqlError:
        """Return the error for a column that is open, and has to be numbers."""
        return SqlError("bad_csv", self._open_reason, f"{_GIVE_MARK.capitalize()}.", [f"column {name}"])

    @property
    def _open_reason(self) -> str:
        return f"{'1,234' if self._has_comma else '1.234'} may be 1234 or 1.234"

    def _decide_as_wanted(self, name: str, mark: DecimalMark, wanted: str, nulls: frozenset[str]) -> Column:
        kind, others = _BY_NAME[_SYNONYMS.get(wanted, wanted)]
        if kind == "text":
            return Column(name, nulls=self._given)
        if kind == "decimal" and self.is_open(mark):
            raise self.refuse_open(name)
        numbers = [one for one in BY_MARK[mark.mark or "."] if one.kind == kind or kind == "decimal"]
        for reading in (*(numbers if kind in ("integer", "decimal") else ()), *others):
            if reading in self.readings:
                return Column(name, kind, reading, nulls)
        quoted = [f"column {name}", *filter(None, [self._contradiction])]
        raise SqlError("bad_csv", f"a column can't be read as {wanted}", quoted=quoted)


def _is_chosen(reading: Reading) -> bool:
    """Whether a column is read so without being asked."""
    return reading not in (ZEROS, ANSWERS)


def find_mark(surveys: Iterable[ColumnSurvey], given: str | None, delimiter: str) -> DecimalMark:
    """Return the decimal mark of a text: the given one, or that of the columns that allow one only."""
    if given is not None:
        return DecimalMark(given)
    sure = {survey.sure_mark for survey in surveys} - {None}
    if len(sure) == 1:
        return DecimalMark(sure.pop() or "")
    # Between commas a decimal comma needs quotes, which some banks write.
    return DecimalMark("." if not sure and delimiter == "," else "", is_sure=False)


def parse_types(types: Iterable[str]) -> dict[str, str]:
    """Return the types that a client gives, as `zip=text`, by the names of columns in lower case. Raises SqlError."""
    parsed: dict[str, str] = {}
    for given in types:
        name, _, kind = given.rpartition("=")
        parsed[name.strip().lower()] = wanted = kind.strip().lower()
        if _SYNONYMS.get(wanted, wanted) not in _BY_NAME:
            raise SqlError("bad_csv", "a column has no such type", f"There are: {', '.join(_BY_NAME)}.", [given])
    return parsed


def shorten(field: str) -> str:
    """Return a field as an answer shows it."""
    return field if len(field) <= _SHOWN else f"{field[:_SHOWN]}…"
