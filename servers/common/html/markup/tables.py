"""Corrects the structure of tables, as browsers do.

Cells outside a row get one, and content between rows or cells is moved before the table (foster parenting, WHATWG
HTML, 13.2.6.1). libxml2 leaves both where they are, and what is in no cell would be lost.
"""

from itertools import groupby

from lxml.etree import Element
from lxml.html import HtmlElement

from ..tree import names_in

_GROUPS = ("thead", "tbody", "tfoot")
_CELLS = frozenset(("td", "th"))
_PARTS = names_in("caption colgroup col thead tbody tfoot tr")


def repair_tables(root: HtmlElement) -> None:
    """Correct all tables of a page."""
    for table in list(root.iter("table")):
        _repair_group(table, table)
        for group in list(table.iterchildren(*_GROUPS)):
            _repair_group(group, table)


def _repair_group(group: HtmlElement, table: HtmlElement) -> None:
    """Correct a table or a part of it: its rows, and what is between them."""
    _unwrap(group)
    _move_out(group, _PARTS | _CELLS, table)
    for are_cells, children in groupby(list(group), lambda child: child.tag in _CELLS):
        if are_cells:
            cells = list(children)
            row = Element("tr")
            cells[0].addprevious(row)
            row.extend(cells)
    for row in group.iterchildren("tr"):
        _unwrap(row)
        _move_out(row, _CELLS, table)


def _unwrap(part: HtmlElement) -> None:
    """Replace each element around rows or cells, such as a form, by its content."""
    pending = list(part)
    for child in pending:
        if child.tag not in _PARTS and child.tag not in _CELLS and _contains_cells(child):
            pending += list(child)
            child.drop_tag()


def _contains_cells(element: HtmlElement) -> bool:
    """Return True if an element contains cells of the table around it."""
    cell = next(element.iterdescendants(*_CELLS), None)
    around = () if cell is None else cell.iterancestors()
    return next((outer for outer in around if outer is element or outer.tag == "table"), None) is element


def _move_out(part: HtmlElement, allowed: frozenset[str], table: HtmlElement) -> None:
    """Move all content of a part of a table before the table, except for elements with an `allowed` tag."""
    if part.text and not part.text.isspace():
        _add_text_before(table, part.text)
        part.text = None
    for child in list(part):
        words = child.tail if child.tail and not child.tail.isspace() else ""
        if words or child.tag not in allowed:
            child.tail = None
        if child.tag not in allowed:
            table.addprevious(child)
        if words:
            _add_text_before(table, words)


def _add_text_before(table: HtmlElement, text: str) -> None:
    before = table.getprevious()
    if before is not None:
        before.tail = (before.tail or "") + text
    else:
        parent = table.getparent()
        parent.text = (parent.text or "") + text
