"""Counts formulas in Excel sheets that are stored without a value. Programs that don't compute formulas write such
files (SpreadsheetML: ECMA-376, part 1, section 18.3.1.4)."""

import re
from typing import IO

_BLOCK_BYTES = 1_048_576
_MAX_CELL_BYTES = 65_536
"""Maximum size of a cell in bytes, enough for a formula of 8,192 characters."""
# Cells of type "str" don't match: without a value, the result of their formula is empty text.
_CELL = re.compile(
    rb"""<(?P<prefix>(?:\w+:)?)c\b(?![^<>]*\st="str")[^<>]*>\s*"""
    rb"""<(?P=prefix)f\b(?:[^<>]*/>|[^<>]*>[^<]*</(?P=prefix)f>)\s*"""
    rb"""(?:<(?P=prefix)v\s*/>|<(?P=prefix)v>\s*</(?P=prefix)v>)?\s*</(?P=prefix)c>"""
)


def count_uncomputed(part: IO[bytes]) -> int:
    """Return the number of cells with a formula but without a value, given the XML of a worksheet."""
    count, rest = 0, b""
    while block := part.read(_BLOCK_BYTES):
        text = rest + block
        end = 0
        for cell in _CELL.finditer(text):
            count, end = count + 1, cell.end()
        rest = text[max(end, len(text) - _MAX_CELL_BYTES) :]
    return count
