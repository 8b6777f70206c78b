"""Defines readings: the ways to read the fields of a column as numbers, dates or booleans.

Each reading has a regular expression, which is tried on many fields at once, joined by a character that no field has.
A reading may change the notation of a number, but must not lose information. So a field with leading zeros, with a
plus sign before an integer, or with more digits than a 64-bit integer can have is not read as a number.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from functools import cached_property, partial
from typing import Literal

Kind = Literal["integer", "decimal", "date", "timestamp", "timestamptz", "boolean", "text"]

SEPARATOR = "\x1f"
NO_VALUE = "\\N"
"""How MySQL and PostgreSQL write NULL, also among texts."""
NULL_MARKS = frozenset(
    (
        *("NA", "N/A", "n/a", "<NA>", "NaN", "nan", "NULL", "Null", "null", "None", "none", NO_VALUE),
        *("-", "--", ".", "..", "?", "#N/A", "#DIV/0!", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!"),
    )
)
"""Null marks: fields that stand for a missing value in a column whose other fields are not text, among them the
errors of spreadsheet programs."""

_LONG = re.compile(r"\d{19}")
_UNSIGNED = r"(?:0|[1-9]\d{0,14})"
"""Integers with at most 15 digits, which a double represents exactly."""
_SIGNED = r"(?:0|-?[1-9]\d{0,14})"
_EXPONENT = r"(?:[eE](?:[+-]?[0-2]?\d{1,2}|-3[01]\d))?"
"""Exponents within the range of a double."""
_DATE = re.compile(r"(\d+)([./-])(\d+)\2(\d+)")
_ISO_DATE = r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
_TIME = r"[T ](?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,6})?)?"
_DAY, _MONTH = r"(?:0?[1-9]|[12]\d|3[01])", r"(?:0?[1-9]|1[0-2])"


class Reading:
    """One way to read all fields of a column."""

    def __init__(
        self,
        kind: Kind,
        pattern: str,
        rewrite: Callable[[str], str] | None = None,
        *,
        check: Callable[[Sequence[str]], bool] | None = None,
        wider: Sequence["Reading"] = (),
    ) -> None:
        self.kind = kind
        self.rewrite = rewrite
        """Converts a field to the form that database engines accept; None if fields already have this form."""
        self.wider: set[Reading] = {reading for other in wider for reading in (other, *other.wider)}
        """The readings that accept every field that this one accepts."""
        self._pattern = pattern
        self._check = check

    def matches(self, fields: Sequence[str], joined: str) -> bool:
        """Return True if all fields that are not empty can be read in this way. `joined` is `join_fields(fields)`."""
        return self._expression.fullmatch(joined) is not None and (self._check is None or self._check(fields))

    # The possessive quantifier (*+) prevents backtracking, which would need memory for each field.
    @cached_property
    def _expression(self) -> re.Pattern[str]:
        return re.compile(f"(?:(?: *(?:{self._pattern}) *)?{SEPARATOR})*+", re.ASCII)


def _dates_exist(to_iso_date: Callable[[str], str], fields: Sequence[str]) -> bool:
    """Return True if all fields that are not empty are dates that exist in the calendar."""
    try:
        for field in filter(str.strip, set(fields)):
            date.fromisoformat(to_iso_date(field))
    except ValueError:
        return False
    return True


def _iso_day(field: str) -> str:
    return field.strip()[:10]


def _reorder(order: Sequence[int], field: str) -> str:
    """Return a date in ISO 8601. `order` contains the numbers of the groups of `_DATE` for year, month and day."""
    match = _DATE.fullmatch(field.strip())
    if match is None:
        raise ValueError(field)
    year, month, day = (int(match[group]) for group in order)
    return f"{year:04}-{month:02}-{day:02}"


def _numbers(mark: str, thousands: str) -> tuple[Reading, Reading, Reading]:
    """Return readings for decimals, for integers with thousands separators, and for decimals with or without them."""
    point, comma = re.escape(mark), re.escape(thousands)
    plain = rf"-?{_UNSIGNED}{_EXPONENT}|[+-]?(?:(?:0|[1-9]\d*){point}\d*|{point}\d+){_EXPONENT}"
    groups = rf"[+-]?[1-9]\d{{0,2}}(?:(?:{comma}\d{{3}})+|(?:['’\u00a0\u202f]\d{{3}})+)"
    to_plain = str.maketrans({**dict.fromkeys(f"{thousands}'’\u00a0\u202f"), mark: "."})

    def normalize(field: str) -> str:
        return field.translate(to_plain)

    grouped = Reading("decimal", rf"{plain}|{groups}(?:{point}\d*)?", normalize)
    integers = Reading("integer", rf"{_SIGNED}|{groups}", normalize, wider=[grouped])
    return Reading("decimal", plain, None if mark == "." else normalize, wider=[grouped]), integers, grouped


def _dates(first: str, second: str, separators: str, order: Sequence[int]) -> Reading:
    rewrite = partial(_reorder, order)
    pattern = rf"{first}([{separators}]){second}\1\d{{4}}" if order[0] == 4 else rf"\d{{4}}([/.]){first}\1{second}"
    return Reading("date", pattern, rewrite, check=partial(_dates_exist, rewrite))


POINT, POINT_INTEGER, POINT_GROUPED = _numbers(".", ",")
COMMA, COMMA_INTEGER, COMMA_GROUPED = _numbers(",", ".")
INTEGER = Reading(
    "integer",
    r"0|-?[1-9]\d{0,18}",
    check=lambda fields: all(-(1 << 63) <= int(field) < 1 << 63 for field in fields if _LONG.search(field)),
)
"""Integers that fit into 64 bits."""
SMALL = Reading("integer", _SIGNED, wider=[INTEGER, POINT_INTEGER, COMMA_INTEGER, POINT, COMMA])
"""Integers of at most 15 digits, so that they may also be decimals."""
DATE = Reading("date", _ISO_DATE, check=partial(_dates_exist, _iso_day))
YEAR_FIRST = _dates(_MONTH, _DAY, "", (1, 3, 4))
DAY_FIRST = _dates(_DAY, _MONTH, "./-", (4, 3, 1))
MONTH_FIRST = _dates(_MONTH, _DAY, "/-", (4, 1, 3))
TIMESTAMP = Reading("timestamp", f"{_ISO_DATE}(?:{_TIME})?", check=partial(_dates_exist, _iso_day))
TIMESTAMPTZ = Reading(
    "timestamptz", rf"{_ISO_DATE}{_TIME}(?:Z|[+-]\d\d(?::?\d\d)?)", check=partial(_dates_exist, _iso_day)
)
BOOLEAN = Reading("boolean", "(?i:true|false)")
# These are only used if the client requests the type:
INTEGER_WITH_ZEROS = Reading("integer", r"[+-]?\d{1,18}")
LOOSE_BOOLEAN = Reading("boolean", "(?i:true|false|yes|no|t|f|y|n|on|off|[01])")

DATES = (DATE, TIMESTAMP, TIMESTAMPTZ, YEAR_FIRST, DAY_FIRST, MONTH_FIRST)
NUMBERS_BY_MARK = {
    ".": (SMALL, INTEGER, POINT_INTEGER, POINT, POINT_GROUPED),
    ",": (SMALL, INTEGER, COMMA_INTEGER, COMMA, COMMA_GROUPED),
}
"""The readings of numbers with each decimal mark, the narrowest first."""
NUMBERS = (SMALL, INTEGER, POINT_INTEGER, COMMA_INTEGER, POINT, COMMA, POINT_GROUPED, COMMA_GROUPED)
"""All readings of numbers. Each comes before the wider ones, which accept everything that it accepts."""
ALL_READINGS: tuple[Reading, ...] = (*NUMBERS, INTEGER_WITH_ZEROS, BOOLEAN, LOOSE_BOOLEAN, *DATES)


def join_fields(fields: Iterable[str]) -> str:
    """Return the fields as one text, each followed by a separator. There must be at least one field."""
    return SEPARATOR.join(fields) + SEPARATOR
