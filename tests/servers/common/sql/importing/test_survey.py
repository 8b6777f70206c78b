"""Types of the columns of a file from all rows, and the notes about them."""

import codecs
import io
from functools import partial

import pytest

from servers.common.sql.errors import SqlError
from servers.common.sql.importing.survey import Plan, TargetTable
from tests.servers.common.sql.importing.surveys import columns_of, survey_all

MARKS = [
    ("a;b\n1,5;1.234\n", [("a", "decimal"), ("b", "integer")], [["1.5", "1234"]]),
    ("a;b\n1.234,50;TRUE\n", [("a", "decimal"), ("b", "boolean")], [["1234.50", "TRUE"]]),
    ("a;b\n1,234;x\n", [("a", "text"), ("b", "text")], [["1,234", "x"]]),
    ("a;b\n1.234;x\n", [("a", "text"), ("b", "text")], [["1.234", "x"]]),
    ("a\tb\n1.234\t0.5\n", [("a", "decimal"), ("b", "decimal")], [["1.234", "0.5"]]),
    ("a;b\n1.234;x\n12,50;y\n", [("a", "decimal"), ("b", "text")], [["1234", "x"], ["12.50", "y"]]),
    ("a;b\n1.234;1.234.567\n", [("a", "integer"), ("b", "integer")], [["1234", "1234567"]]),
    ('a,b\n"1,234",x\n', [("a", "text"), ("b", "text")], [["1,234", "x"]]),
    ('a,b\n"1,234",x\n"1,234",y\n', [("a", "text"), ("b", "text")], [["1,234", "x"], ["1,234", "y"]]),
    ('a,b\n"1,234",x\n"2,345",y\n', [("a", "integer"), ("b", "text")], [["1234", "x"], ["2345", "y"]]),
    ('a,b\n"1,234",x\n1.234,y\n', [("a", "text"), ("b", "text")], [["1,234", "x"], ["1.234", "y"]]),
    ("a;b\n1,234;1.234.567\n1.234;5\n", [("a", "decimal"), ("b", "integer")], [["1.234", "1234567"], ["1234", "5"]]),
    ('a,b\n"1,234","30,5"\n', [("a", "decimal"), ("b", "decimal")], [["1.234", "30.5"]]),
    ("a;b\n1.5;1,234\n", [("a", "decimal"), ("b", "integer")], [["1.5", "1234"]]),
    ("a;b\n1 234,50;1 234\n3,10;5\n", [("a", "decimal"), ("b", "text")], [["1234.50", "1 234"], ["3.10", "5"]]),
    ('a;b\n="007";1\n="8";2\n', [("a", "text"), ("b", "integer")], [["007", "1"], ["8", "2"]]),
    (
        "a;b\n(null);[NULL]\n1,5;2024-01-31\n",
        [("a", "decimal"), ("b", "date")],
        [[None, None], ["1.5", "2024-01-31"]],
    ),
    ("a;b\n1'234.5;1\u00a0234\n", [("a", "decimal"), ("b", "integer")], [["1234.5", "1234"]]),
]


@pytest.mark.parametrize(("text", "columns", "first"), MARKS)
def test_unambiguous_columns_determine_the_decimal_mark(
    text: str, columns: list[tuple[str, str]], first: list[list[str]]
) -> None:
    plan = survey_all(text)
    assert [(column.name, column.kind) for column in plan.columns] == columns
    assert [[*row] for row in plan.first_rows] == first


def test_a_given_decimal_mark_is_used() -> None:
    assert survey_all("a;b\n1,234;x\n", decimal=",").first_rows == [("1.234", "x")]
    assert survey_all("a;b\n1,234;x\n", decimal=".").first_rows == [("1234", "x")]


def test_an_ambiguous_number_is_reported_with_the_option_that_decides() -> None:
    note = '1.234 may be 1234 or 1.234: specify "." or "," as decimal'
    assert survey_all("a;b\n1.234;x\n").decisions[-1] == f"kept as text: a ({note})"
    assert survey_all('a,b\n"1,234",x\n"2,345",y\n').decisions[-1] == "note: a (1,234 is read as 1234)"


@pytest.mark.parametrize("field", ["1.234", "1,234"])
def test_an_ambiguous_number_for_an_existing_numeric_column_is_refused(field: str) -> None:
    there = TargetTable([("a", "REAL"), ("b", "TEXT")], lambda declared, _: declared == "TEXT")
    with pytest.raises(SqlError, match=f"{field} may be 1234") as raised:
        survey_all(f"a;b\n{field};{field}\n", there)
    assert (raised.value.suggestion, raised.value.quoted) == ('Specify "." or "," as decimal.', ("column a",))


@pytest.mark.parametrize(("first", "last"), [("3,9", "3,10"), ("1e5", "2e6")])
def test_decimals_like_versions_or_codes_fit_an_existing_numeric_column(first: str, last: str) -> None:
    there = TargetTable([("a", "REAL"), ("b", "TEXT")], lambda declared, _: declared == "TEXT")
    plan = survey_all(f"a;b\n{first};{first}\n{last};{last}\nNA;x\n", there)
    assert [column.kind for column in plan.columns] == ["decimal", "text"]
    as_numbers = [field.replace(",", ".") for field in (first, last)]
    assert plan.first_rows == [(as_numbers[0], first), (as_numbers[1], last), (None, "x")]


@pytest.mark.parametrize("text", ["a;b\n1.234;x\n", 'a,b\n"1,234",x\n'])
def test_the_type_decimal_does_not_resolve_an_ambiguous_number(text: str) -> None:
    with pytest.raises(SqlError, match="may be 1234 or") as raised:
        survey_all(text, types=["a=decimal"])
    assert raised.value.suggestion == 'Specify "." or "," as decimal.'
    assert survey_all(text, types=["a=decimal"], decimal=".").columns[0].kind == "decimal"


DATES = [
    (["2024-01-31", "NA"], "date", "2024-01-31"),
    (["2024-02-30"], "text", "2024-02-30"),
    (["2024/1/31"], "date", "2024-01-31"),
    (["31.1.2024"], "date", "2024-01-31"),
    (["1/2/2024", "1/31/2024"], "date", "2024-01-02"),
    (["1/2/2024", "31/1/2024"], "date", "2024-02-01"),
    (["1/2/2024", "2/1/2024"], "text", "1/2/2024"),
    (["2024-01-31 10:00", "2024-01-31"], "timestamp", "2024-01-31 10:00"),
    (["13/02/2018 10:21", "3/2/2018"], "timestamp", "2018-02-13 10:21"),
    (['"13.02.2018, 9:05:30.5"'], "timestamp", "2018-02-13 09:05:30.5"),
    (["2/13/2018 12:03:52 AM"], "timestamp", "2018-02-13 00:03:52"),
    (["2/13/2018 1:03pm"], "timestamp", "2018-02-13 13:03"),
    (["2018/2/13 9:05"], "timestamp", "2018-02-13 09:05"),
    (["2018-2-13 09:05"], "timestamp", "2018-02-13 09:05"),
    (["1001-1-1"], "text", "1001-1-1"),
    (["31/12/9999"], "date", "9999-12-31"),
    (["2/3/2018 10:21"], "text", "2/3/2018 10:21"),
    (["30/02/2018 10:21"], "text", "30/02/2018 10:21"),
    (["13/02/2018 13:21 PM"], "text", "13/02/2018 13:21 PM"),
    (["31-OCT-2023"], "date", "2023-10-31"),
    (["Jan 1 2000"], "date", "2000-01-01"),
    (['"Sept 5, 2000"', '"May 15, 2000"'], "date", "2000-09-05"),
    (["31 October 2023 10:21"], "timestamp", "2023-10-31 10:21"),
    (['"2024-01-31 10:00:00,123"'], "timestamp", "2024-01-31 10:00:00.123"),
    (["2024-01-31 10:00:00 +0100", "2024-01-31 10:00 UTC"], "timestamptz", "2024-01-31 10:00:00 +0100"),
    (["30 Feb 2023"], "text", "30 Feb 2023"),
    (["2024-01-31T10:00:00Z"], "timestamptz", "2024-01-31T10:00:00Z"),
    (["2024-01-31T10:00:00Z", "2024-01-31"], "text", "2024-01-31T10:00:00Z"),
]


@pytest.mark.parametrize(("fields", "kind", "first"), DATES)
def test_dates_are_recognized_if_only_one_order_fits(fields: list[str], kind: str, first: str) -> None:
    plan = survey_all("n,v\n" + "".join(f"{n},{field}\n" for n, field in enumerate(fields)))
    assert (plan.columns[1].kind, plan.first_rows[0][1]) == (kind, first)


KEPT = [
    (["007", "8"], "leading zeros: '007' in row 1"),
    (["1", "01/02/24"], "mixed with text: '01/02/24' in row 2"),
    (["1", "08"], "leading zeros: '08' in row 2"),
    (["+4930123", "+4940123"], "a plus sign, as in phone numbers: '+4930123' in row 1"),
    (["12345678901234567890"], "more digits than a number can keep: '12345678901234567890' in row 1"),
    (["1", "2", "many"], "mixed with text: 'many' in row 3"),
    (['"$1,234.50"', "$3"], "a currency or percent sign: '$1,234.50' in row 1"),
    (["12%", "5.5%"], "a currency or percent sign: '12%' in row 1"),
    (["1e5", "2e6"], "codes or numbers, such as 1e5"),
    (["3.9", "3.10", "3.11"], "versions or numbers, such as 3.9 and 3.10: specify the type decimal"),
    (["1/2/2024"], "dates whose day and month can't be told apart: specify the type date dmy or date mdy"),
    (
        ["1/2/2024 9:05", "1/2/2024"],
        "dates whose day and month can't be told apart: specify the type timestamp dmy or timestamp mdy",
    ),
]


@pytest.mark.parametrize(("fields", "reason"), KEPT)
def test_a_column_kept_as_text_is_reported_with_the_reason(fields: list[str], reason: str) -> None:
    plan = survey_all("n,v\n" + "".join(f"{n},{field}\n" for n, field in enumerate(fields)))
    assert plan.columns[1].kind == "text"
    assert plan.decisions[-1] == f"kept as text: v ({reason})"


def test_a_column_of_times_and_short_years_is_not_called_mixed() -> None:
    decisions = survey_all("a,b\n10:30,30.08.24\n11:45:10,31.08.24\n").decisions
    assert [decision for decision in decisions if "text:" in decision] == []


@pytest.mark.parametrize("fields", [["1.50", "2.00", "0.90"], ["1.0", "2.5", "3.25"], ["1.00", "10.5"]])
def test_decimals_with_trailing_zeros_are_not_version_numbers(fields: list[str]) -> None:
    assert columns_of("v\n" + "".join(f"{field}\n" for field in fields)) == [("v", "decimal")]


def test_a_late_field_affects_the_type_of_its_column() -> None:
    text = "a,b\n" + "1,2\n" * 5_000 + "1.50,late\n"
    assert columns_of(text) == [("a", "decimal"), ("b", "text")]
    assert "b (mixed with text: 'late' in row 5,001)" in survey_all(text).decisions[-1]


def test_a_decimal_beyond_double_precision_is_noted() -> None:
    plan = survey_all("v\n" + "1.5\n" * 500 + "123456789.0123456789\n")
    assert plan.decisions[-1] == "note: v (decimals of more than 17 digits)"


def test_null_markers_are_null_in_numeric_columns_and_text_in_text_columns() -> None:
    plan = survey_all("a,b\n1,NA\nNA,x\n-,y\n")
    assert plan.first_rows == [("1", "NA"), (None, "x"), (None, "y")]
    assert "read as NULL, like empty fields: 'NA' (1), '-' (1)" in plan.decisions
    assert survey_all("a\n1.5\n#DIV/0!\n#REF!\n").first_rows == [("1.5",), (None,), (None,)]
    given = survey_all("a,b\n1,NA\nNA,x\n-,y\n", nulls=["NA"])
    assert given.first_rows == [("1", None), (None, "x"), ("-", "y")]


def test_the_null_of_mysql_is_null_among_texts() -> None:
    plan = survey_all('a,b\n1,\\N\n\\N,"a \\"b\\""\n\\N,\\N\n')
    assert plan.first_rows == [("1", None), (None, 'a "b"'), (None, None)]
    assert "read as NULL, like empty fields: '\\\\N' (4)" in plan.decisions
    assert survey_all("a\n\\N\nx\n", nulls=["x"]).first_rows == [("\\N",), (None,)]


def test_rows_without_a_value_are_left_out_at_the_end_only() -> None:
    plan = survey_all("a,b\n,\n1,2\n,\n" + ",\n" * 2_500)
    assert (plan.rows, plan.first_rows) == (2, [(None, None), ("1", "2")])
    assert plan.decisions[-1] == "2,501 rows at the end left out, without any value"


TYPED = [
    (["zip=text"], "1,2024\n", [("zip", "text"), ("d", "integer")], ("1", "2024")),
    (["ZIP=Decimal"], "1,2\n", [("zip", "decimal"), ("d", "integer")], ("1", "2")),
    (["zip=integer"], "007,2\n", [("zip", "integer"), ("d", "integer")], ("007", "2")),
    (["d=date dmy"], "1,1/2/2024\n", [("zip", "integer"), ("d", "date")], ("1", "2024-02-01")),
    (["d=date mdy"], "1,1/2/2024\n", [("zip", "integer"), ("d", "date")], ("1", "2024-01-02")),
    (["d=timestamp mdy"], "1,1/2/2024 9:05\n", [("zip", "integer"), ("d", "timestamp")], ("1", "2024-01-02 09:05")),
    (["d=boolean"], "1,yes\n", [("zip", "integer"), ("d", "boolean")], ("1", "yes")),
]


@pytest.mark.parametrize(("types", "row", "columns", "first"), TYPED)
def test_given_column_types_are_used(
    types: list[str], row: str, columns: list[tuple[str, str]], first: tuple[str, ...]
) -> None:
    plan = survey_all(f"zip,d\n{row}", types=types, header=True)
    assert [(column.name, column.kind) for column in plan.columns] == columns
    assert plan.first_rows == [first]


WRONG = [
    ({"types": ["a=blob"]}, "there is no such column type: a=blob"),
    ({"types": ["x=text"]}, "types names a column that does not exist"),
    ({"types": ["b=integer"]}, "a column can't be read as integer"),
    ({"types": ["d=date"]}, "dates whose day and month can't be told apart"),
    ({"encoding": "utf-99"}, "there is no charset with that name"),
    ({"encoding": "hex"}, "there is no charset with that name"),
    ({"encoding": "ascii"}, "the text is not ascii"),
]


@pytest.mark.parametrize(("written", "reason"), WRONG)
def test_unknown_and_unfitting_format_options_are_refused(written: dict[str, object], reason: str) -> None:
    with pytest.raises(SqlError) as raised:
        survey_all("a,b,d\n1,é,1/2/2024\n", **written)
    assert raised.value.line.startswith(reason)


ENCODED = [
    ("a,b\n1,é\n".encode(), "utf-8"),
    (codecs.BOM_UTF8 + "a,b\n1,é\n".encode(), "utf-8-sig"),
    ("a,b\n1,é\n".encode("utf-16"), "utf-16"),
    (codecs.BOM_UTF16_BE + "a,b\n1,é\n".encode("utf-16-be"), "utf-16"),
    ("a,b\n1,é\n".encode("utf-16-le"), "utf-16-le"),
    ("a,b\n1,é\n2,café\n".encode("latin-1"), "cp1252"),
]


@pytest.mark.parametrize(("data", "encoding"), ENCODED)
def test_the_charset_is_detected_from_the_bytes(data: bytes, encoding: str) -> None:
    plan = survey_all(partial(io.BytesIO, data))
    assert (plan.table.encoding, plan.columns[0].name, plan.first_rows[0]) == (encoding, "a", ("1", "é"))


def test_the_charset_is_detected_from_late_bytes() -> None:
    data = ("a,b\n" + "1,x\n" * 100_000 + "2,café\n").encode("cp1252")
    plan = survey_all(partial(io.BytesIO, data))
    assert (plan.table.encoding, plan.rows) == ("cp1252", 100_001)


OTHERS = [
    (b"PAR1\x15", "a Parquet file"),
    (b"\x1f\x8b\x08", "compressed with gzip"),
    (b"PK\x03\x04\x00", "a zip archive"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b'[\n {"a": 1, "b": 2}]', "the text is JSON, not a table. Write it as CSV first, or set delimiter"),
    (b'\xef\xbb\xbf{"a": 1}\n{"a": 2}\n', "the text is JSON"),
    (b"<!DOCTYPE html>\n<p>Sign in", "the text is HTML or XML"),
]


@pytest.mark.parametrize(("data", "kind"), OTHERS)
def test_files_of_other_formats_are_refused_with_their_kind(data: bytes, kind: str) -> None:
    with pytest.raises(SqlError, match=kind):
        survey_all(partial(io.BytesIO, data))


def _notes(plan: Plan, start: str) -> list[str]:
    return [words for words in plan.decisions if start in words]


def test_short_rows_are_filled_and_counted() -> None:
    plan = survey_all("a,b,c\n1,2,3\n\n4\n5,6\n")
    assert plan.first_rows == [("1", "2", "3"), ("4", None, None), ("5", "6", None)]
    assert _notes(plan, "short") == ["2 short rows were filled with NULL, first row 2, line 4"]


def test_a_long_row_is_refused_with_its_line_unless_extra_fields_are_empty() -> None:
    assert survey_all("a,b\n1,2,,\n").first_rows == [("1", "2")]
    with pytest.raises(SqlError, match="row 2, line 5: it has 3 fields, but there are 2 columns"):
        survey_all('a,b\n1,"two\nlines"\n\n3,4,5\n')


def test_trailing_empty_columns_without_a_name_are_omitted() -> None:
    plan = survey_all("a,b,,\n1,2,,\n")
    assert [column.name for column in plan.columns] == ["a", "b"]
    assert _notes(plan, "left out") == ["2 columns at the end left out, which have neither a name nor a value"]


def test_a_sep_line_sets_the_delimiter() -> None:
    plan = survey_all("sep=|\na|b;c\n1|2\n")
    assert [column.name for column in plan.columns] == ["a", "b;c"]
    assert 'delimiter "|" as the first line says' in plan.decisions[0]


TITLED = [
    'Account:,"Private, 7",,\n\nFrom:,01.01.2012,,\nTo:,01.02.2012,,\n\n{}',
    "Account history\nPeriod: 2018-02-28 - 2018-03-31\nMade on: 2018-03-31 09:57\n{}",
    "Date from,,,\nDate to,,,\nAmount from,,,\nAmount to,,,\n,,,\n{}",
    "Made at 10:00\n\nIBAN,DE12\nBank,ING\nBalance,1234.56,EUR\n\nSorted by,Day\n\n{}",
    "Instrument:,X100,7\nOperator:,Bob,3\n{}",
    "Company; X, Y, Z\n{}",
    "# ---\n# All data\n# Pages\n# 2024\n# ---\n\n{}",
    "\n".join(f"line {number} of words" for number in range(40)) + "\n{}",
]
"""What banks, instruments and web sites write above a table."""


@pytest.mark.parametrize("text", TITLED)
def test_titles_above_a_table_are_skipped(text: str) -> None:
    for rows in ("5,Ann,1.50,x\n", "5,Ann,1.50,x\n6,Bob,2.75,y\n7,Cid,3.75,y\n"):
        plan = survey_all(text.format(f"Number,Who,Amount,Note\n{rows}"))
        assert [column.name for column in plan.columns] == ["Number", "Who", "Amount", "Note"]
        assert plan.first_rows[0] == ("5", "Ann", "1.50", "x")
        assert " above the table left out" in plan.decisions[0]


def test_a_table_above_a_wider_one_is_not_taken_for_a_title() -> None:
    with pytest.raises(SqlError, match="row 3, line 5: it has 3 fields, but there are 2 columns"):
        survey_all("a,b\n1,2\n3,4\n\nname,x,y\nAnn,1,2\nBob,3,4\n")


@pytest.mark.parametrize("text", ["c0\nv0\na;b\n", "tags\nred\nblue\nred, green, blue\nblue, red, green\n"])
def test_text_lines_without_numbers_below_are_not_titles(text: str) -> None:
    assert len(columns_of(text)) == 1
