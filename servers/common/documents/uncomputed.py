"""Counts formulas in Excel sheets that are stored without their values, as programs write them that don't compute
formulas (SpreadsheetML: ECMA-376, part 1, section 18.3.1.4)."""

import re
from typing import IO

_BLOCK_BYTES = 1_048_576
_MAX_CELL_BYTES = 65_536
"""Maximum size of a cell in bytes, enough for a formula of 8,192 characters."""
# A cell of type "str" has no value if the result of its formula is empty text, so it is not counted.
_CELL = re.compile(
    rb"""<(?P<prefix>(?:\w+:)?)c\b(?![^<>]*\st="str")[^<>]*>\s*"""
    rb"""<(?P=prefix)f\b(?:[^<>]*/>|[^<>]*>[^<]*</(?P=prefix)f>)\s*"""
    rb"""(?:<(?P=prefix)v\s*/>|<(?P=prefix)v>\s*</(?P=prefix)v>)?\s*</(?P=prefix)c>"""
)


def count_uncomputed(part: IO[bytes]) -> int:
    """Return the number of cells with a formula and no value in a worksheet, given the XML of its `part`."""
    count, rest = 0, b""
    while block := part.read(_BLOCK_BYTES):
        text = rest + block
        end = 0
        for cell in _CELL.finditer(text):
            count, end = count + 1, cell.end()
        rest = text[max(end, len(text) - _MAX_CELL_BYTES) :]
    return count
