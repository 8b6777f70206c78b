from datetime import date, datetime, time, timedelta
from io import BytesIO

import pytest
from openpyxl import Workbook
from openpyxl.comments import Comment

from servers.common.documents import sheets
from servers.common.documents.document import DocumentError
from servers.common.documents.sheets import read_sheets


def written(workbook: Workbook) -> bytes:
    workbook.save(data := BytesIO())
    return data.getvalue()


def one_sheet(*rows: list[object], name: str = "Data") -> Workbook:
    workbook = Workbook()
    sheet = workbook.active
    sheet.title = name
    for row in rows:
        sheet.append(row)
    return workbook


def test_a_sheet_becomes_a_table_with_its_name_as_heading():
    html = read_sheets(written(one_sheet(["Name", "Age"], ["Ann & Bob", 30]))).html
    assert html == (
        "<h2>Data</h2><table><tr><th>Name</th><th>Age</th></tr><tr><td>Ann &amp; Bob</td><td>30</td></tr></table>"
    )


@pytest.mark.parametrize(
    ("value", "form", "shown"),
    [
        (1.0, "General", "1"),
        (0.1 + 0.2, "General", "0.3"),
        (12_345_678_901, "General", "12345678901"),
        (0.256, "0%", "26%"),
        (0.256, "0.00%", "25.60%"),
        (0.5, '0.0" % of all"', "0.5"),
        (True, "General", "TRUE"),
        (datetime(2024, 2, 29), "yyyy-mm-dd", "2024-02-29"),
        (datetime(2024, 2, 29, 13, 5), "yyyy-mm-dd h:mm", "2024-02-29 13:05:00"),
        (date(2024, 2, 29), "dd.mm.yyyy", "2024-02-29"),
        (time(9, 30), "h:mm", "09:30:00"),
        (timedelta(days=1, hours=2), "[h]:mm:ss", "26:00:00"),
        ("a\nb", "General", "a<br>b"),
        ("#DIV/0!", "General", "#DIV/0!"),
    ],
)
def test_values_are_formatted_as_displayed(value: object, form: str, shown: str):
    workbook = one_sheet([value])
    workbook.active["A1"].number_format = form
    assert f"<th>{shown}</th>" in read_sheets(written(workbook)).html


def test_titles_above_a_table_become_paragraphs_and_empty_edges_are_dropped():
    html = read_sheets(written(one_sheet([None, "Sales 2024"], [], [None, "Month", "EUR"], [None, "May", 7]))).html
    assert html == (
        "<h2>Data</h2><p>Sales 2024</p>"
        "<table><tr><th>Month</th><th>EUR</th></tr><tr><td>May</td><td>7</td></tr></table>"
    )


def test_merged_cells_have_their_value_in_the_first_cell_only():
    workbook = one_sheet(["a", "b", "c"], ["x", None, "y"])
    workbook.active.merge_cells("A2:B2")
    assert "<tr><td>x</td><td></td><td>y</td></tr>" in read_sheets(written(workbook)).html


def test_links_of_cells_are_kept():
    workbook = one_sheet(["Site", "Rank"], ["Example", 1])
    workbook.active["A2"].hyperlink = "https://example.org/?a=1&b=2"
    assert '<td><a href="https://example.org/?a=1&amp;b=2">Example</a></td>' in read_sheets(written(workbook)).html


def test_hidden_sheets_comments_and_uncomputed_formulas_are_counted():
    workbook = one_sheet(["a", "=1+1"], ["b", "=2+2"])
    workbook.active["A1"].comment = Comment("why", "Ann")
    workbook.create_sheet("Secret").sheet_state = "hidden"
    document = read_sheets(written(workbook))
    assert "Secret" not in document.html
    assert (document.counts, document.hidden_sheets) == ({"sheets": 1}, ("Secret",))
    assert read_sheets(written(workbook), "Secret").html == "<h2>Secret</h2>"
    assert document.notes == ("Left out: hidden sheets (1), comments (1), formulas without a stored value (2).",)


def test_a_workbook_over_the_limit_is_truncated_and_one_sheet_can_be_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sheets, "MAX_CELLS", 4)
    workbook = one_sheet(*([number, "x"] for number in range(5)))
    workbook.create_sheet("Last").append(["end"])
    document = read_sheets(written(workbook))
    assert document.html.count("<tr>") == 2
    assert document.notes[0].startswith("Everything after 4 cells, 200,000 rows and 200 columns is left out. Ask for")
    alone = read_sheets(written(workbook), "Last")
    assert (alone.html, alone.notes) == ("<h2>Last</h2><table><tr><th>end</th></tr></table>", ())


def test_a_sheet_with_huge_dimensions_is_read_up_to_its_content(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sheets, "MAX_ROWS", 1_000)
    workbook = one_sheet(["a", "b"])
    workbook.active["XFD1048576"] = "far"
    document = read_sheets(written(workbook))
    assert "<th>a</th><th>b</th>" in document.html
    assert len(document.notes) == 1


def test_an_invalid_workbook_is_refused_as_damaged():
    with pytest.raises(DocumentError, match="damaged") as caught:
        read_sheets(b"PK\x03\x04")
    assert caught.value.code == "unreadable"
