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
        *("(null)", "[NULL]", "NaT"),
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
_ISO_DATE = r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
_TIME = r"[T ](?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,6})?)?"
_YEAR, _DAY = r"(?P<year>\d{4})", r"(?P<day>0?[1-9]|[12]\d|3[01])"
_MONTH = r"(?P<month>0?[1-9]|1[0-2])"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
MONTH_NAME = (
    r"(?i:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_CLOCK = (
    r"(?:,? {1,2}|T)(?:(?P<hour>[01]?\d|2[0-3])(?P<minutes>:[0-5]\d(?::[0-5]\d(?:[.,]\d{1,6})?)?)"
    r"|(?P<hour12>0?[1-9]|1[0-2])(?P<minutes12>:[0-5]\d(?::[0-5]\d(?:[.,]\d{1,6})?)?) ?(?P<half>[AaPp])[Mm])"
)
"""A time as spreadsheet programs write it: the hour may have a single digit, and AM or PM may follow."""


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
            date.fromisoformat(to_iso_date(field)[:10])
    except ValueError:
        return False
    return True


def _rewrite_date(expression: re.Pattern[str], field: str) -> str:
    """Return a date, and its time if it has one, in ISO 8601. `expression` has groups for their parts."""
    match = expression.fullmatch(field.strip())
    if match is None:
        raise ValueError(field)
    month = match["month"]
    number = int(month) if month.isdecimal() else _MONTHS.index(month[:3].lower()) + 1
    day = f"{match['year']}-{number:02}-{int(match['day']):02}"
    parts = match.groupdict()
    if parts.get("hour12"):
        hour = int(parts["hour12"]) % 12 + 12 * (parts["half"] in "pP")
        return f"{day} {hour:02}{parts['minutes12'].replace(',', '.')}"
    return f"{day} {int(parts['hour']):02}{parts['minutes'].replace(',', '.')}" if parts.get("hour") else day


def _numbers(mark: str, thousands: str) -> tuple[Reading, Reading, Reading]:
    """Return readings for decimals, for integers with thousands separators, and for decimals with or without them."""
    point, comma = re.escape(mark), re.escape(thousands)
    plain = rf"-?{_UNSIGNED}{_EXPONENT}|[+-]?(?:(?:0|[1-9]\d*){point}\d*|{point}\d+){_EXPONENT}"
    groups = rf"[+-]?[1-9]\d{{0,2}}(?:(?:{comma}\d{{3}})+|(?:['’\u00a0\u202f]\d{{3}})+)"
    to_plain = str.maketrans({**dict.fromkeys(f"{thousands}'’ \u00a0\u202f"), mark: "."})

    def normalize(field: str) -> str:
        return field.translate(to_plain)

    # With spaces, only decimals are numbers for sure: 123 456 may be a phone number.
    spaced = rf"[+-]?[1-9]\d{{0,2}}(?: \d{{3}})+{point}\d+"
    grouped = Reading("decimal", rf"{plain}|{groups}(?:{point}\d*)?|{spaced}", normalize)
    integers = Reading("integer", rf"{_SIGNED}|{groups}", normalize, wider=[grouped])
    return Reading("decimal", plain, None if mark == "." else normalize, wider=[grouped]), integers, grouped


def _dates(pattern: str) -> tuple[Reading, Reading]:
    """Return a reading for dates that match `pattern`, and one for columns in which some of them have a time."""
    dates, timestamps = (re.compile(text, re.ASCII) for text in (pattern, f"{pattern}(?:{_CLOCK})?"))
    to_date, to_timestamp = partial(_rewrite_date, dates), partial(_rewrite_date, timestamps)
    return (
        Reading("date", dates.pattern, to_date, check=partial(_dates_exist, to_date)),
        Reading("timestamp", timestamps.pattern, to_timestamp, check=partial(_dates_exist, to_timestamp)),
    )


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
DATE = Reading("date", _ISO_DATE, check=partial(_dates_exist, str.strip))
# Between hyphens, 1001-1-1 is a code rather than a date.
YEAR_FIRST, YEAR_FIRST_TIME = _dates(rf"(?:(?!\d+-)|(?=1[5-9]|20|99)){_YEAR}(?P<mark>[/.-]){_MONTH}(?P=mark){_DAY}")
DAY_FIRST, DAY_FIRST_TIME = _dates(rf"{_DAY}(?P<mark>[./-]){_MONTH}(?P=mark){_YEAR}")
MONTH_FIRST, MONTH_FIRST_TIME = _dates(rf"{_MONTH}(?P<mark>[/-]){_DAY}(?P=mark){_YEAR}")
DAY_NAME_FIRST, DAY_NAME_FIRST_TIME = _dates(rf"{_DAY}(?P<mark>[ /-]?)(?P<month>{MONTH_NAME})(?P=mark){_YEAR}")
NAME_FIRST, NAME_FIRST_TIME = _dates(rf"(?P<month>{MONTH_NAME}) {{1,2}}{_DAY},? {{1,2}}{_YEAR}")
TIMESTAMP = Reading("timestamp", f"{_ISO_DATE}(?:{_TIME})?", check=partial(_dates_exist, str.strip))
TIMESTAMPTZ = Reading(
    "timestamptz", rf"{_ISO_DATE}{_TIME} ?(?:Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)", check=partial(_dates_exist, str.strip)
)
BOOLEAN = Reading("boolean", "(?i:true|false)")
FORMULA = Reading("text", rf'="[^"{SEPARATOR}]*"', lambda field: field.strip()[2:-1])
"""Texts like ="007", which spreadsheet programs show as 007."""
# These are only used if the client requests the type:
INTEGER_WITH_ZEROS = Reading("integer", r"[+-]?\d{1,18}")
LOOSE_BOOLEAN = Reading("boolean", "(?i:true|false|yes|no|t|f|y|n|on|off|[01])")

DATES = (DATE, YEAR_FIRST, DAY_FIRST, MONTH_FIRST, DAY_NAME_FIRST, NAME_FIRST)
TIMESTAMPS = (
    *(TIMESTAMP, YEAR_FIRST_TIME, DAY_FIRST_TIME, MONTH_FIRST_TIME),
    *(DAY_NAME_FIRST_TIME, NAME_FIRST_TIME),
)
NUMBERS_BY_MARK = {
    ".": (SMALL, INTEGER, POINT_INTEGER, POINT, POINT_GROUPED),
    ",": (SMALL, INTEGER, COMMA_INTEGER, COMMA, COMMA_GROUPED),
}
"""The readings of numbers with each decimal mark, the narrowest first."""
NUMBERS = (SMALL, INTEGER, POINT_INTEGER, COMMA_INTEGER, POINT, COMMA, POINT_GROUPED, COMMA_GROUPED)
"""All readings of numbers. Each comes before the wider ones, which accept everything that it accepts."""
ALL_READINGS: tuple[Reading, ...] = (
    *NUMBERS,
    INTEGER_WITH_ZEROS,
    BOOLEAN,
    LOOSE_BOOLEAN,
    FORMULA,
    *DATES,
    *TIMESTAMPS,
    TIMESTAMPTZ,
)


def join_fields(fields: Iterable[str]) -> str:
    """Return the fields as one text, each followed by a separator. There must be at least one field."""
    return SEPARATOR.join(fields) + SEPARATOR
