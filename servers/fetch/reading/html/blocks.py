"""Blocks that keep their form: code, and tables."""

import re
from collections.abc import Callable, Iterator
from itertools import islice

from lxml.html import HtmlElement

from servers.fetch.reading.html.tree import HEADINGS, length

__all__ = ["code_text", "is_data", "language", "write_table"]

_NAMED = re.compile(
    r"(?:^|\s)(?:language|lang|highlight-source|highlight-text|highlight|brush)[-:]\s?([\w+#.-]{1,30})(?![\w-])"
)
_NO_LANGUAGE = frozenset(
    ("none", "default", "text", "plain", "plaintext", "nohighlight", "notranslate", "wrapper", "source")
)
_GUTTERS = frozenset(
    ("gutter", "linenos", "lineno", "linenodiv", "line-numbers-rows", "line-number", "linenumber", "hljs-ln-numbers")
)
_LEVELS = 3
"""How far around a block its language may be named."""
_MOST_COLUMNS = 200
_LONGEST_CELL = 1_000
"""Characters that a cell of a table of data may have."""
_NOT_IN_CELLS = ("table", "pre", "form", *HEADINGS[:3])


def language(element: HtmlElement) -> str:
    """The language of a block of code, by its classes or those just around it; empty where none is named."""
    near = [*element.iter("code"), element]
    parent = element.getparent()
    while (
        parent is not None
        and len(near) < _LEVELS + 2
        and parent.tag in ("div", "figure", "td", "tr", "tbody", "table")
    ):
        near.append(parent)
        parent = parent.getparent()
    for one in near[:10]:
        named = one.get("data-lang") or one.get("data-language") or _in_classes(one.get("class") or "")
        if named and re.fullmatch(r"[\w+#.-]{1,30}", named) and named.lower() not in _NO_LANGUAGE:
            return str(named).lower()
    return ""


def code_text(element: HtmlElement) -> str:
    """The text with all its spaces and line breaks, without numbers of lines and the empty lines around it."""
    parts: list[str] = []
    _collect(element, parts)
    return "\n".join(line.rstrip() for line in "".join(parts).replace("\r\n", "\n").strip("\n").split("\n"))


def _collect(element: HtmlElement, parts: list[str]) -> None:
    parts.append(element.text or "")
    for child in element:
        if child.tag == "br":
            parts.append("\n")
        elif _GUTTERS.isdisjoint((child.get("class") or "").split()):
            _collect(child, parts)
            if child.tag in ("div", "p", "li", "tr") and parts and not parts[-1].endswith("\n"):
                parts.append("\n")
        parts.append(child.tail or "")


def _in_classes(classes: str) -> str:
    if found := _NAMED.search(classes):
        return found[1]
    if found := re.search(r"(?:^|\s)(?:sourceCode|highlight|code)\s+(\w{1,20})(?:\s|$)", classes):
        return found[1]
    return ""


def is_data(table: HtmlElement) -> bool:
    """Whether a table holds data: more than one column, and short cells without headings or tables in them."""
    if table.get("role") in ("presentation", "none") or next(table.iterdescendants(*_NOT_IN_CELLS), None) is not None:
        return False
    rows = list(_rows(table))
    if len(rows) < 2 and not any(cell.tag == "th" for row in rows for cell in row):
        return False
    return max((len(_cells(row)) for row in rows), default=0) > 1 and all(
        length(cell) <= _LONGEST_CELL for row in rows for cell in _cells(row)
    )


def write_table(table: HtmlElement, write_cell: Callable[[HtmlElement], str], *, plain: bool) -> str:
    """The rows of a table, each a line. Cells that reach over several rows or columns leave the others empty."""
    lines = list(_lines(table, write_cell))
    while lines and not any(lines[0]):
        del lines[0]
    if plain:
        return "\n".join(" | ".join(filter(None, line)) for line in lines if any(line))
    columns = max(map(len, lines), default=0)
    head = lines.pop(0) if lines and _has_head(table) else [""] * columns
    head += [""] * (columns - len(head))
    written = [head, ["---"] * columns, *(line for line in lines if any(line))]
    return "\n".join(f"| {' | '.join(line)} |" for line in written)


def _rows(table: HtmlElement) -> Iterator[HtmlElement]:
    for child in table:
        if child.tag == "tr":
            yield child
        elif child.tag in ("thead", "tbody", "tfoot"):
            yield from (row for row in child if row.tag == "tr")


def _cells(row: HtmlElement) -> list[HtmlElement]:
    return [cell for cell in row if cell.tag in ("td", "th")]


def _lines(table: HtmlElement, write_cell: Callable[[HtmlElement], str]) -> Iterator[list[str]]:
    reaching: dict[int, int] = {}
    for row in _rows(table):
        line: list[str] = []
        taken, reaching = reaching, {column: rows - 1 for column, rows in reaching.items() if rows > 1}
        for cell in islice(_cells(row), _MOST_COLUMNS):
            while len(line) in taken and len(line) < _MOST_COLUMNS:
                line.append("")
            rows = _span(cell, "rowspan")
            columns = min(_span(cell, "colspan"), max(_MOST_COLUMNS - len(line), 1))
            if rows > 1:
                reaching.update({len(line) + at: rows - 1 for at in range(columns)})
            line += [write_cell(cell), *[""] * (columns - 1)]
        yield line


def _has_head(table: HtmlElement) -> bool:
    if table.find("thead") is not None:
        return True
    first = next(_rows(table), None)
    return first is not None and sum(cell.tag == "th" for cell in _cells(first)) > 1


def _span(cell: HtmlElement, name: str) -> int:
    text = (cell.get(name) or "").strip()
    return min(int(text), _MOST_COLUMNS) if text.isdecimal() and len(text) < 6 else 1
