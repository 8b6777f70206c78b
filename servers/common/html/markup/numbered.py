"""Removes the line numbers of code in tables or blocks, and turns the code into `pre`.

Highlighters write two forms of tables. One form has a single row, with all numbers in the first cell and all code in
the second. The other has a row for each line, and the number is often only in an attribute. Doxygen and Chroma
write an element for each line. VuePress writes all numbers in an element beside the code, which is hidden from screen
readers.
"""

from lxml.etree import SubElement
from lxml.html import HtmlElement

from ..blocks import GUTTERS, LINES
from ..tree import drop, squeeze

_NUMBER_ATTRIBUTE = "data-line-number"
_CODE = ("pre", "code")
_MIN_LINES = 2
"""Minimum number of lines of numbered code."""
_MAX_DIGITS = 9
"""Maximum number of digits of a line number."""
_FRAGMENT_CLASS = "fragment"
"""The class of the blocks of code that Doxygen writes. Their lines may have no numbers."""
_NO_BREAK = "\u00a0"
"""The no-break space between the number of a line and its code."""


def remove_line_numbers(root: HtmlElement) -> None:
    """Turn all tables and blocks of code with line numbers into code."""
    for table in list(root.iter("table")):
        rows = [row for row in table.iter("tr") if next(row.iterancestors("table")) is table]
        pairs = [(row[0], row[1]) for row in rows if len(row) == 2]
        if len(pairs) == 1:
            _remove_column(*pairs[0])
        elif len(pairs) == len(rows) >= _MIN_LINES and all(_is_numbered(cell) for cell, _ in pairs):
            lines = [code.text_content().strip("\n") for _, code in pairs]
            for child in list(table):
                table.remove(child)
            table.tag, table.text = "pre", "\n".join(lines)
    for code in list(root.iter(*_CODE)):
        _remove_first_numbers(code)
        for beside in (code.getprevious(), code.getnext()):
            if beside is not None and beside.get("aria-hidden") == "true" and _counts_lines(beside):
                drop(beside)
    for block in filter(_is_code_block, root.xpath("//div[div[contains(@class, 'line')]]")):
        # The white space between the lines would be visible in a `pre`.
        block.tag = "pre"
        for line in block:
            line.tail = None
            for number in filter(_is_number, line):
                number.tail = (number.tail or "").removeprefix(_NO_BREAK)


def _is_code_block(block: HtmlElement) -> bool:
    """Return True if a block consists of lines of code that have numbers, or that Doxygen has written."""
    classes = (block.get("class") or "").split()
    texts = (block.text, *(line.tail for line in block))
    if len(block) < _MIN_LINES or any(map(squeeze, texts)):
        return False
    if any(LINES.isdisjoint((line.get("class") or "").split()) for line in block):
        return False
    return _FRAGMENT_CLASS in classes or any(map(_is_number, block[0]))


def _is_number(element: HtmlElement) -> bool:
    return not GUTTERS.isdisjoint((element.get("class") or "").split())


def _remove_column(numbers: HtmlElement, code: HtmlElement) -> None:
    """Remove a cell with line numbers, if the next cell contains code."""
    if not _counts_lines(numbers) or next(code.iter(*_CODE), None) is None:
        return
    numbers.getparent().remove(numbers)
    if next(code.iter("pre"), None) is None:
        children, text = list(code), code.text
        code.text = None
        SubElement(code, "pre").extend(children)
        code[0].text = text


def _remove_first_numbers(code: HtmlElement) -> None:
    """Remove the first element of each line, if it is the number of the line. Each line is an element."""
    if len(code) < _MIN_LINES or not len(code[0]):
        return
    numbers = [line[0] for line in code if len(line) and not squeeze(line.text)]
    if len(numbers) == len(code) and _are_consecutive([squeeze(number.text_content()) for number in numbers]):
        for number in numbers:
            line = number.getparent()
            line.text = number.tail
            line.remove(number)


def _counts_lines(element: HtmlElement) -> bool:
    """Return True if an element contains only consecutive numbers. A single number needs the class of a line's."""
    words = " ".join(element.itertext()).split()
    return len(words) >= (1 if _is_number(element) else _MIN_LINES) and _are_consecutive(words)


def _are_consecutive(words: list[str]) -> bool:
    if not words[0].isdecimal() or len(words[0]) > _MAX_DIGITS:
        return False
    first = int(words[0])
    return words == [str(number) for number in range(first, first + len(words))]


def _is_numbered(cell: HtmlElement) -> bool:
    """Return True if a cell contains only a line number, as text or in an attribute."""
    text = str(cell.text_content()).strip()
    if not GUTTERS.isdisjoint((cell.get("class") or "").split()):
        return text == "" or text.isdecimal()
    numbers = [number for element in cell.iter() if (number := element.get(_NUMBER_ATTRIBUTE))]
    return bool(numbers) and text in ("", numbers[0])
