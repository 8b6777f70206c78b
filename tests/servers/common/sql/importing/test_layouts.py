"""The first row and the header of a table."""

import csv
from collections.abc import Sequence

import pytest

from servers.common.sql.errors import SqlError
from servers.common.sql.importing.layouts import find_layout, name_columns

NAMED = [
    ("a,b\n1,2\n", ["a", "b"], 1),
    ("a,b\nx,y\nz,w\n", ["a", "b"], 1),
    ("1,2\n3,4\n", None, 0),
    ("x,1\ny,2\nx,3\n", None, 0),
    ("country,1990,1991\nPeru,5,6\n", ["country", "1990", "1991"], 1),
    (",0\n1821,269\n1822,321\n", ["", "0"], 1),
    ("5.1,3.5,setosa\n4.9,3.0,setosa\n", None, 0),
    ("John,Doe,120 Main St.,08075\nJack,Roe,7 Elm St.,09119\n", None, 0),
    ("a,b,\n1,2,\n", ["a", "b", ""], 1),
    ("# made by x\n# in 2020\na,b\n1,2\n", ["a", "b"], 3),
    ("#a,b\n1,2\n", ["a", "b"], 1),
    ("# codes\n#a,b,note\n1,2\n3,4,x\n5,6\n", ["a", "b", "note"], 2),
    ("a,\n1,2\n", ["a", ""], 1),
    ("#a,b\n", ["a", "b"], 1),
    ("# x\n# y\n# z\nname\nAnn\n", ["name"], 4),
    ("#red,1,2\n#blue,2,2\n#red,3,3\n", None, 0),
    ("#ff0000\n#00ff00\n#ff0000\nred\n", None, 0),
    ("Report,,\n,,\na,b,c\n1,2,3\n", ["a", "b", "c"], 3),
    ("Sales of 2020\n\na,b\n1,2\n", ["a", "b"], 3),
    ("178,3,x\n1,2,3,4,5,6,7\n2,3,4,5,6,7,8\n3,4,5,6,7,8,9\n", None, 1),
    ("Speed,Run\n1,850,1\n2,740,2\n3,900,3\n", ["", "Speed", "Run"], 1),
    ("a,b\n", ["a", "b"], 1),
    ("id,name\n--,----\n1,Ann\n2,Bob\n", ["id", "name"], 2),
    ("id,name\n---+---\n1,Ann\n2,Bob\n", ["id", "name"], 2),
    ("id,name\n--,-\n1,Ann\n2,Bob\n", ["id", "name"], 1),
    ('"Dec 8, 2022",31-OCT-2023\n"Sep 15, 2018",30-OCT-2023\n', None, 0),
    ('"13/2/2018, 9:05"\n"14/2/2018, 9:06"\n', None, 0),
]


def _rows(text: str) -> Sequence[Sequence[str]]:
    return list(csv.reader(text.splitlines()))


@pytest.mark.parametrize(("text", "names", "skipped"), NAMED)
def test_a_row_unlike_the_others_is_the_header(text: str, names: list[str] | None, skipped: int) -> None:
    layout = find_layout(_rows(text), None, [])
    assert (layout.names, layout.skipped) == (names, skipped)


def test_a_short_first_row_is_data_without_a_header() -> None:
    rows = _rows("Ann,,,,\nBob,1,2,3,4\nCid,2,3,4,5\nDee,3,4,5,6\n")
    assert find_layout(rows, False, []).skipped == 0


def test_a_row_that_matches_the_columns_of_the_table_is_the_header() -> None:
    assert find_layout(_rows("x,y\nx,2\n"), None, ["X", "Y", "z"]).names == ["x", "y"]
    assert find_layout(_rows("x,y\nx,2\n"), None, ["a", "b"]).names is None


@pytest.mark.parametrize(("header", "names"), [(True, ["1", "2"]), (False, None), (2, ["3", "4"])])
def test_a_given_header_row_is_used(header: bool | int, names: list[str] | None) -> None:
    assert find_layout(_rows("1,2\n3,4\n5,6\n"), header, []).names == names


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_a_text_without_rows_is_refused(text: str) -> None:
    with pytest.raises(SqlError, match="there are no rows"):
        find_layout(_rows(text), None, [])


def test_a_header_line_beyond_the_end_is_refused() -> None:
    with pytest.raises(SqlError, match="line 9 contains no column names"):
        find_layout(_rows("a\n1\n"), 9, [])


def test_unnamed_and_duplicate_columns_get_new_names() -> None:
    layout = find_layout(_rows(",a,A,\ufeff b ,c1\n1,2,3,4,5\n"), None, [])
    assert name_columns(layout) == (
        ["c1", "a", "A_2", "b", "c1_2"],
        ["column 1: c1", "column 3, 'A': A_2", "column 5, 'c1': c1_2"],
    )


def test_long_column_names_are_cut_to_the_limit_of_the_database() -> None:
    layout = find_layout(_rows(f"{'é' * 40},{'é' * 40}\n1,2\n"), None, [])
    names, changed = name_columns(layout, 63)
    assert names == ["é" * 31, "é" * 30 + "_2"]
    assert len(changed) == 2
