"""Sheets of Excel workbooks as rows."""

import io
from datetime import datetime
from functools import partial
from zipfile import ZipFile

import pytest
from openpyxl import Workbook

from servers.common.sql.errors import SqlError
from tests.servers.common.sql.importing.surveys import survey_all


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


def test_the_first_sheet_that_is_shown_is_read_with_its_values(workbook: bytes) -> None:
    plan = survey_all(partial(io.BytesIO, workbook))
    assert [(column.name, column.kind) for column in plan.columns] == [
        ("id", "integer"),
        ("price", "decimal"),
        ("day", "date"),
        ("ok", "boolean"),
    ]
    assert plan.first == [("1", "1.1", "2024-01-31", "True"), ("2", "7", None, "False")]
    others = "others are other, hidden (hidden): give sheet for one of them"
    assert f"the sheet 'Sheet' of a workbook; {others}" in plan.words[0]


def test_another_sheet_is_read_by_its_name(workbook: bytes) -> None:
    assert survey_all(partial(io.BytesIO, workbook), sheet="other").layout.names == ["x", "y"]
    with pytest.raises(SqlError) as raised:
        survey_all(partial(io.BytesIO, workbook), sheet="none")
    assert raised.value.quoted == ("sheets: Sheet, other, hidden (hidden)",)


def test_a_hidden_sheet_is_read_by_its_name_alone(workbook: bytes) -> None:
    assert survey_all(partial(io.BytesIO, workbook), sheet="hidden").layout.names == ["z"]


def test_a_sheet_without_rows_is_refused_with_the_names_of_the_others() -> None:
    book, data = Workbook(), io.BytesIO()
    book.create_sheet("Data").append(["a"])
    book.save(data)
    with pytest.raises(SqlError, match="the sheet has no rows") as raised:
        survey_all(partial(io.BytesIO, data.getvalue()))
    assert raised.value.quoted == ("sheet Sheet", "other sheet: Data")
    assert raised.value.suggestion == "Give sheet for another one."


def test_formulas_whose_values_the_file_does_not_have_are_counted() -> None:
    book, data = Workbook(), io.BytesIO()
    assert book.active is not None
    for row in (["a", "b", "twice"], [1, 2, "=A2*2"], [3, 4, "=A3*2"]):
        book.active.append(row)
    book.save(data)
    plan = survey_all(partial(io.BytesIO, data.getvalue()))
    assert plan.first == [("1", "2", None), ("3", "4", None)]
    reason = "2 cells have formulas without a value, which is NULL"
    assert plan.words[1] == f"{reason}: open and save the workbook in a spreadsheet program first"


def test_a_damaged_workbook_is_refused(workbook: bytes) -> None:
    with pytest.raises(SqlError, match="the workbook is damaged"):
        survey_all(partial(io.BytesIO, workbook[:2_000]))


def test_an_archive_that_names_parts_but_has_none_is_refused() -> None:
    data = io.BytesIO()
    with ZipFile(data, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
    with pytest.raises(SqlError, match="the workbook is damaged"):
        survey_all(partial(io.BytesIO, data.getvalue()))


def test_numbers_of_cells_have_a_point_beside_texts_with_a_comma() -> None:
    book, data = Workbook(), io.BytesIO()
    assert book.active is not None
    for row in (["a", "b"], [1.234, "1,5"], [2.345, "2,5"]):
        book.active.append(row)
    book.save(data)
    assert survey_all(partial(io.BytesIO, data.getvalue())).first == [("1.234", "1.5"), ("2.345", "2.5")]
