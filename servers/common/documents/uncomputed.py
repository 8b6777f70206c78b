"""Formulas of a sheet of an Excel workbook that have no value in the file, as programs write them that compute none
(SpreadsheetML: ECMA-376, part 1, section 18.3.1.4)."""

import re
from typing import IO

_BLOCK = 1_048_576
_LONGEST = 65_536
"""Bytes of a cell at most, which a formula of 8,192 characters fits into."""
# A formula that gives the empty text has the type "str".
_CELL = re.compile(
    rb"""<(?P<prefix>(?:\w+:)?)c\b(?![^<>]*\st="str")[^<>]*>\s*"""
    rb"""<(?P=prefix)f\b(?:[^<>]*/>|[^<>]*>[^<]*</(?P=prefix)f>)\s*"""
    rb"""(?:<(?P=prefix)v\s*/>|<(?P=prefix)v>\s*</(?P=prefix)v>)?\s*</(?P=prefix)c>"""
)


def count_uncomputed(part: IO[bytes]) -> int:
    """Return the number of cells of a worksheet that have a formula and no value, in the XML of its `part`."""
    count, rest = 0, b""
    while block := part.read(_BLOCK):
        text = rest + block
        end = 0
        for cell in _CELL.finditer(text):
            count, end = count + 1, cell.end()
        rest = text[max(end, len(text) - _LONGEST) :]
    return count
