"""Workbooks whose styles openpyxl refuses."""

import re
from io import BytesIO
from zipfile import ZipFile

import pytest
from openpyxl import Workbook

from servers.common.documents.workbook import open_workbook


@pytest.mark.parametrize("fill", [b"<fill/>", b"<fill></fill>"])
def test_a_workbook_with_an_empty_fill_is_opened(fill: bytes) -> None:
    workbook, data, changed = Workbook(), BytesIO(), BytesIO()
    workbook.active.append([0.5])
    workbook.active["A1"].number_format = "0%"
    workbook.save(data)
    with ZipFile(data) as archive, ZipFile(changed, "w") as target:
        for name in archive.namelist():
            styles = re.sub(rb"<fill><patternFill ?/></fill>", fill, archive.read(name))
            assert name != "xl/styles.xml" or fill in styles
            target.writestr(name, styles)
    cell = open_workbook(changed).active["A1"]
    assert (cell.value, cell.number_format) == (0.5, "0%")
