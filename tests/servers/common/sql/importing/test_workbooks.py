"""Sheets of Excel workbooks as rows."""

import io
from datetime import datetime, timedelta
from functools import partial
from zipfile import ZipFile

import pytest
from openpyxl import Workbook

from servers.common.sql.errors import SqlError
from servers.common.sql.importing.files import Opener
from tests.servers.common.sql.importing.surveys import columns_of, survey_all


@pytest.fixture(scope="module")
def workbook() -> bytes:
    book, data = Workbook(), io.BytesIO()
    sheet = book.active
    assert sheet is not None
    for row in (
        ["Report"],
        [],
        ["id", "price", "day", "ok"],
        [1, 1.1, datetime(2024, 1, 31), True],
        [2, 7, None, False],
    ):
        sheet.append(row)
    book.create_sheet("other").append(["x", "y"])
    hidden = book.create_sheet("hidden", 0)
    hidden.append(["z"])
    hidden.sheet_state = "hidden"
    book.save(data)
    return data.getvalue()


def test_the_first_visible_sheet_is_read_with_its_values(workbook: bytes) -> None:
    plan = survey_all(partial(io.BytesIO, workbook))
    assert [(column.name, column.kind) for column in plan.columns] == [
        ("id", "integer"),
        ("price", "decimal"),
        ("day", "date"),
        ("ok", "boolean"),
    ]
    assert plan.first_rows == [("1", "1.1", "2024-01-31", "True"), ("2", "7", None, "False")]
    others = "others are other, hidden (hidden): specify sheet to read one of them"
    assert f"the sheet 'Sheet' of a workbook; {others}" in plan.decisions[0]


def test_another_sheet_is_read_by_name(workbook: bytes) -> None:
    assert survey_all(partial(io.BytesIO, workbook), sheet="other").layout.names == ["x", "y"]
    with pytest.raises(SqlError) as raised:
        survey_all(partial(io.BytesIO, workbook), sheet="none")
    assert raised.value.quoted == ("sheets: Sheet, other, hidden (hidden)",)


def test_a_hidden_sheet_is_read_by_name_only(workbook: bytes) -> None:
    assert survey_all(partial(io.BytesIO, workbook), sheet="hidden").layout.names == ["z"]


def test_a_sheet_without_rows_is_refused_with_the_other_sheets() -> None:
    book, data = Workbook(), io.BytesIO()
    book.create_sheet("Data").append(["a"])
    book.save(data)
    with pytest.raises(SqlError, match="the sheet has no rows") as raised:
        survey_all(partial(io.BytesIO, data.getvalue()))
    assert raised.value.quoted == ("sheet Sheet", "other sheet: Data")
    assert raised.value.suggestion == "Specify sheet to read another one."


def test_formulas_without_a_stored_value_are_counted() -> None:
    plan = survey_all(sheet_of(["a", "b", "twice"], [1, 2, "=A2*2"], [3, 4, "=A3*2"]))
    assert plan.first_rows == [("1", "2", None), ("3", "4", None)]
    reason = "2 cells have formulas without a value, so NULL is imported"
    assert plan.decisions[1] == f"{reason}: open and save the workbook in a spreadsheet program first"


def test_a_damaged_workbook_is_refused(workbook: bytes) -> None:
    with pytest.raises(SqlError, match="the workbook is damaged"):
        survey_all(partial(io.BytesIO, workbook[:2_000]))


def test_an_archive_without_the_parts_of_a_workbook_is_refused() -> None:
    data = io.BytesIO()
    with ZipFile(data, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
    with pytest.raises(SqlError, match="the workbook is damaged"):
        survey_all(partial(io.BytesIO, data.getvalue()))


def test_numeric_cells_and_texts_with_a_decimal_comma_can_be_mixed() -> None:
    assert survey_all(sheet_of(["a", "b"], [1.234, "1,5"], [2.345, "2,5"])).first_rows == [
        ("1.234", "1.5"),
        ("2.345", "2.5"),
    ]


def sheet_of(*rows: list[object]) -> Opener:
    book, data = Workbook(), io.BytesIO()
    assert book.active is not None
    for row in rows:
        book.active.append(row)
    book.save(data)
    return partial(io.BytesIO, data.getvalue())


def test_an_ambiguous_text_stays_text_beside_numeric_cells() -> None:
    plan = survey_all(sheet_of(["a", "b", "c"], ["1.234", "12,50", 1.234], ["2.500", "3,75", 2.345]))
    assert [column.kind for column in plan.columns] == ["text", "decimal", "decimal"]
    assert plan.first_rows == [("1.234", "12.50", "1.234"), ("2.500", "3.75", "2.345")]
    assert "a (1.234 may be 1234 or 1.234: " in plan.decisions[-1]


def test_a_given_decimal_mark_applies_to_text_cells_only() -> None:
    plan = survey_all(sheet_of(["a", "c"], ["1.234", 1.234], ["2.500", 2.345]), decimal=",")
    assert plan.first_rows == [("1234", "1.234"), ("2500", "2.345")]


def test_a_column_of_numbers_and_ambiguous_texts_stays_text() -> None:
    opener = sheet_of(["a"], [1.234], ["2.500"])
    assert columns_of(opener) == columns_of(opener, decimal=",") == [("a", "text")]


def test_a_cell_beside_the_table_is_in_a_column_without_a_name() -> None:
    plan = survey_all(sheet_of(["a", "b"], [1, 2], [3, 4, "checked"]))
    assert [column.name for column in plan.columns] == ["a", "b", "c3"]
    assert plan.first_rows == [("1", "2", None), ("3", "4", "checked")]
    assert plan.decisions[1:] == ["named: column 3: c3"]


def test_durations_are_written_in_hours() -> None:
    durations = [timedelta(hours=26, minutes=30), timedelta(minutes=5, seconds=1.5), timedelta(0)]
    plan = survey_all(sheet_of(["n", "took"], *([n, duration] for n, duration in enumerate(durations))))
    assert plan.first_rows == [("0", "26:30:00"), ("1", "0:05:01.5"), ("2", "0:00:00")]
