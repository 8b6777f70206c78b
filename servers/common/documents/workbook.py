"""Opens Excel workbooks with openpyxl, also those that openpyxl refuses because of their styles."""

import re
from io import BytesIO
from typing import Any, BinaryIO
from zipfile import ZipFile

from openpyxl import load_workbook

_STYLES = "xl/styles.xml"
_EMPTY_FILL = re.compile(rb"<fill\s*/>|<fill>\s*</fill>")


def open_workbook(file: BinaryIO) -> Any:
    """Return the workbook in a file, with the last computed values of formulas. Raises the errors of openpyxl."""
    try:
        return load_workbook(file, read_only=True, data_only=True, keep_links=False)
    except TypeError:
        # openpyxl refuses a fill without contents, which Excel accepts and other programs write.
        file.seek(0)
        return load_workbook(_fill_in(file.read()), read_only=True, data_only=True, keep_links=False)


def _fill_in(body: bytes) -> BytesIO:
    """Return the workbook with a pattern in each empty fill."""
    changed = BytesIO(body)
    with ZipFile(changed, "a") as archive:
        styles = archive.read(_STYLES)
        # The new part is added at the end. Two entries with one name would cause a warning.
        archive.filelist.remove(archive.NameToInfo.pop(_STYLES))
        archive.writestr(_STYLES, _EMPTY_FILL.sub(b"<fill><patternFill/></fill>", styles))
    return changed
