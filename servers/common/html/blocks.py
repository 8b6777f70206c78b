"""Writes code and tables, whose form is preserved."""

import re
from collections.abc import Callable, Iterator

from lxml.html import HtmlElement

from .tree import HEADINGS, length, names_in

_LANGUAGE_CLASS = re.compile(
    r"(?:^|\s)(?:language|lang|highlight-source|highlight-text|highlight|brush)[-:]\s?([\w+#.-]{1,30})(?![\w-])"
)
_LANGUAGE_AFTER_CLASS = re.compile(r"(?:^|\s)(?:sourceCode|highlight|code)\s+(\w{1,20})(?:\s|$)")
_NO_LANGUAGE = frozenset(
    ("none", "default", "text", "plain", "plaintext", "nohighlight", "notranslate", "wrapper", "source")
)
GUTTERS = names_in("""
    gutter linenos lineno linenodiv line-numbers-rows line-number linenumber hljs-ln-numbers ln lnt
    react-syntax-highlighter-line-number
""")
"""Classes of elements that contain line numbers."""
LINES = names_in("line code-line token-line view-line")
"""Classes of the elements that contain one line of highlighted code."""
_LINE_STYLE = re.compile(r"display\s*:\s*(?:block|flex|grid)", re.IGNORECASE)
_LANGUAGE_LEVELS = 3
"""Number of enclosing elements whose classes may name the language of a block of code."""
_MAX_COLUMNS = 200
"""Maximum number of columns that cells span."""
_MAX_LAYOUT_CELL = 1_000
"""A table without headers may be used for layout if one of its cells is longer than this, in characters."""
_MIN_ROWS, _MIN_SHARE = 3, 0.7
"""A table with long cells contains data if this many rows, and more than this share of them, have several cells."""
_POSITIONS = {"thead": 0, "tfoot": 2}
"""The positions in which browsers show the head and the foot of a table. Its other parts have position 1."""
_LAYOUT_ELEMENTS = ("table", "form")
"""A table without headers that contains one of these elements is used for layout."""


# Code


def language(element: HtmlElement) -> str:
    """Return the language of a block of code, from its classes or those of enclosing elements; "" without one."""
    elements = [*element.iter("code"), element]
    parent = element.getparent()
    while (
        parent is not None
        and len(elements) < _LANGUAGE_LEVELS + 2
        and parent.tag in ("div", "figure", "td", "tr", "tbody", "table")
    ):
        elements.append(parent)
        parent = parent.getparent()
    for candidate in elements[:10]:
        classes = candidate.get("class") or ""
        matches = (pattern.search(classes) for pattern in (_LANGUAGE_CLASS, _LANGUAGE_AFTER_CLASS))
        name = (
            candidate.get("data-lang")
            or candidate.get("data-language")
            or next((match[1] for match in matches if match), "")
        )
        if name and re.fullmatch(r"[\w+#.-]{1,30}", name) and name.lower() not in _NO_LANGUAGE:
            return str(name).lower()
    return ""


def code_text(element: HtmlElement) -> str:
    """Return the text of a block of code with its spaces and line breaks, but without line numbers, without spaces at
    the ends of lines, and without empty lines around it."""
    parts: list[str] = []
    _collect_text(element, parts)
    text = "".join(parts).replace("\r\n", "\n").replace("\u00a0", " ")
    return "\n".join(line.rstrip() for line in text.strip("\n").split("\n"))


def _collect_text(element: HtmlElement, parts: list[str]) -> None:
    """Add the pieces of an element's text to `parts`, except empty ones."""
    if element.text:
        parts.append(element.text)
    for child in element:
        if child.tag == "br":
            parts.append("\n")
        # A button in code copies it.
        elif child.tag != "button" and GUTTERS.isdisjoint((child.get("class") or "").split()):
            _collect_text(child, parts)
            ends_line = child.tag in ("div", "p", "li", "tr") or (
                _is_line(child) and not (child.tail or "").strip(" \t") and not _is_before_break(child)
            )
            if ends_line and parts and not parts[-1].endswith("\n"):
                parts.append("\n")
        if child.tail:
            parts.append(child.tail)


def _is_before_break(element: HtmlElement) -> bool:
    following = element.getnext()
    return following is not None and following.tag == "br"


def _is_line(element: HtmlElement) -> bool:
    """Return True if the style or the class of an inline element says that it is a line of code."""
    style = element.get("style")
    if style and _LINE_STYLE.search(style):
        return True
    return not LINES.isdisjoint((element.get("class") or "").split())


# Tables


def is_data(table: HtmlElement) -> bool:
    """Return True if a table contains data, and False if it is used for layout.

    A data table has more than one column and row, and no page headings in its cells. It has headers, or its cells are
    short, or most of its rows have several cells. Only a table with headers may contain forms and other tables. A
    listing with line numbers is not data.
    """
    if table.get("role") in ("presentation", "none"):
        return False
    rows = list(_rows(table))
    cells = [cell for row in rows for cell in _cells(row)]
    has_headers = table.find("thead") is not None or any(cell.tag == "th" for cell in cells)
    if (len(rows) < 2 and not has_headers) or max((len(_cells(row)) for row in rows), default=0) < 2:
        return False
    if not has_headers and next(table.iterdescendants(*_LAYOUT_ELEMENTS), None) is not None:
        return False
    if any(_is_for_layout(cell) for cell in cells):
        return False
    if has_headers or all(length(cell) <= _MAX_LAYOUT_CELL for cell in cells):
        return True
    # A layout table has a long cell in one or two rows, surrounded by rows with one cell.
    full_rows = sum(len(_cells(row)) > 1 for row in rows)
    return full_rows >= _MIN_ROWS and full_rows > _MIN_SHARE * len(rows)


def _is_for_layout(cell: HtmlElement) -> bool:
    """Return True if a cell contains a heading, nested tables, or line numbers."""
    if cell.tag == "td" and next(cell.iterdescendants(*HEADINGS[:3]), None) is not None:
        return True
    inner = next(cell.iterdescendants("table"), None)
    if inner is not None and next(inner.iterdescendants("table"), None) is not None:
        return True
    return not GUTTERS.isdisjoint((cell.get("class") or "").split())


def write_rows(table: HtmlElement, write_cell: Callable[[HtmlElement], str]) -> str:
    """Return the rows of a nested table, one line each. The two cells of a row of two are separated by a colon."""
    lines = [list(filter(None, line)) for line in _cell_texts(table, write_cell)]
    return "\n".join((": " if len(line) == 2 else ", ").join(line) for line in lines if line)


def write_table(table: HtmlElement, write_cell: Callable[[HtmlElement], str], *, plain: bool) -> str:
    """Return the rows of a table, one line each. A cell that spans rows or columns is followed by empty ones."""
    lines = list(_cell_texts(table, write_cell))
    while lines and not any(lines[0]):
        del lines[0]
    if plain:
        return "\n".join(" | ".join(filter(None, line)) for line in lines if any(line))
    columns = max(map(len, lines), default=0)
    first = next(_rows(table), None)
    has_header = table.find("thead") is not None or (
        first is not None and sum(cell.tag == "th" for cell in _cells(first)) > 1
    )
    header = lines.pop(0) if lines and has_header else [""] * columns
    header += [""] * (columns - len(header))
    rows = [header, ["---"] * columns, *(line for line in lines if any(line))]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _rows(table: HtmlElement) -> Iterator[HtmlElement]:
    """Yield the rows in the order in which browsers show them, whatever their order in the page."""
    for child in sorted(table, key=lambda part: _POSITIONS.get(part.tag, 1)):
        if child.tag == "tr":
            yield child
        elif child.tag in ("thead", "tbody", "tfoot"):
            yield from (row for row in child if row.tag == "tr")


def _cells(row: HtmlElement) -> list[HtmlElement]:
    return [cell for cell in row if cell.tag in ("td", "th")]


def _cell_texts(table: HtmlElement, write_cell: Callable[[HtmlElement], str]) -> Iterator[list[str]]:
    # For each column, the number of further rows that a cell of an earlier row spans.
    spanning: dict[int, int] = {}
    for row in _rows(table):
        line: list[str] = []
        covered, spanning = spanning, {column: rows - 1 for column, rows in spanning.items() if rows > 1}
        for cell in _cells(row):
            while len(line) in covered and len(line) < _MAX_COLUMNS:
                line.append("")
            rows = _span(cell, "rowspan")
            columns = min(_span(cell, "colspan"), max(_MAX_COLUMNS - len(line), 1))
            if rows > 1:
                spanning.update({len(line) + offset: rows - 1 for offset in range(columns)})
            line += [write_cell(cell), *[""] * (columns - 1)]
        yield line


def _span(cell: HtmlElement, name: str) -> int:
    text = (cell.get(name) or "").strip()
    return min(int(text), _MAX_COLUMNS) if text.isdecimal() and len(text) < 6 else 1
