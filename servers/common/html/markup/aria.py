"""Turns the content of attributes into tags and text: headings and tables that are defined by roles, checkboxes, and
the alternative text of icons in cells. (Without the icon of a check mark, a cell would mean the opposite.)

The tree itself is changed, so that the main content is then chosen from the text that a reader sees.
"""

from collections.abc import Iterator
from itertools import chain, islice

from lxml.html import HtmlElement

from ..tree import HEADINGS, has_text, length, squeeze
from .drawings import name_of_drawing
from .embedded import EMBEDDED

_CHECKED = {"true": "[x] ", "false": "[ ] ", "mixed": "[ ] "}
_NESTED_TABLES = ".//table | .//*[@role='table' or @role='grid' or @role='treegrid']"
_CELL_PARENT_ROLES = ("row", "cell", "gridcell", "columnheader", "rowheader", "table", "grid", "treegrid")
_CELL_TAGS = {"cell": "td", "gridcell": "td", "columnheader": "th", "rowheader": "th"}
_MIN_PICTURE = 100
"""Maximum width of an icon in pixels. A wider picture is not an icon."""
_MAX_ELEMENTS = 20
"""The text of a checkbox is searched in at most this many elements."""
_MAX_NAME = 40
"""Maximum length of the alternative text of an icon whose width is unknown, in characters."""


def show_attributes(root: HtmlElement) -> None:
    """Turn the content of attributes into text or tags."""
    for element in root.xpath("//*[@role='heading']"):
        level = element.get("aria-level") or "2"
        if element.tag not in HEADINGS and level in "123456" and has_text(element):
            element.tag = f"h{level}"
    _show_checkboxes(root)
    for table in root.xpath("//*[@role='table' or @role='grid' or @role='treegrid']"):
        if table.tag not in ("table", "tbody", "tr"):
            _make_table(table)
    for cell in list(root.iter("td", "th")):
        if next(cell.iterdescendants("table"), None) is None:
            _show_alternatives(cell)
    for element in root.xpath("//*[@role='img'][@aria-label]"):
        if element.tag not in ("img", "svg") and not has_text(element):
            element.text = element.get("aria-label")


def _show_checkboxes(root: HtmlElement) -> None:
    """Turn each checkbox in a list item into a mark such as `[x]`, and put one before an item that is a checkbox
    itself."""
    for item in root.xpath("//li[@data-checked]"):
        mark = _CHECKED.get(item.get("data-checked"))
        first = next((element for element in islice(item.iter(), _MAX_ELEMENTS) if squeeze(element.text)), None)
        if mark and first is not None:
            first.text = mark + first.text.lstrip()
    for box in root.xpath("//li//input[@type='checkbox'] | //li//*[@role='checkbox']"):
        if next(box.iterancestors("li")).get("data-checked") in _CHECKED or has_text(box):
            continue
        if box.tag == "input":
            mark = "[x] " if box.get("checked") is not None else "[ ] "
        else:
            mark = _CHECKED.get(box.get("aria-checked") or "", "")
        box.tag, box.text = "span", mark


def _make_table(table: HtmlElement) -> None:
    """Turn an element into a table if all its text is in rows and cells that are defined by roles."""
    if table.xpath(_NESTED_TABLES):
        return
    rows = table.xpath(".//*[@role='row']")
    cells: dict[HtmlElement, list[HtmlElement]] = {row: [] for row in rows}
    for cell in table.iterdescendants():
        if cell.get("role") in _CELL_TAGS:
            parent = next(
                (element for element in cell.iterancestors() if element.get("role") in _CELL_PARENT_ROLES), None
            )
            if parent not in cells:
                return
            cells[parent].append(cell)
    if not any(cells.values()) or sum(map(length, chain(*cells.values()))) < length(table):
        return
    for row, row_cells in cells.items():
        row.tag = "tr"
        for cell in row_cells:
            cell.tag, cell.tail = _CELL_TAGS[cell.get("role")], None
        row.text, row[:] = None, row_cells
    table.tag, table.text, table[:] = "table", None, rows
    for row in rows:
        row.tail = None


def _show_alternatives(cell: HtmlElement) -> None:
    """Replace the icons in a cell with their alternative text."""
    for picture in list(cell.iter("svg")):
        text = "" if picture.get("aria-hidden") == "true" else name_of_drawing(picture)
        picture.tag = "span"
        for inner in list(picture):
            picture.remove(inner)
        picture.text = text
    if has_text(cell):
        return
    for element, text in list(_alternatives(cell)):
        if element.tag in ("img", "input", "i", "em", "b"):
            element.tag = "span"
        element.text = text


def _alternatives(cell: HtmlElement) -> Iterator[tuple[HtmlElement, str]]:
    """Yield the icons and checkboxes of a cell without text, each with the text that replaces it."""
    for element in cell.iter():
        if element.tag == "img" and not element.get(EMBEDDED):
            text = squeeze(element.get("alt")) or squeeze(element.get("aria-label")) or squeeze(element.get("title"))
            if text and _is_icon(element, text):
                yield element, text
        elif element.tag == "input":
            if element.get("type") == "checkbox" and element.get("disabled") is not None:
                yield element, "[x] " if element.get("checked") is not None else "[ ] "
        elif not len(element) and (text := squeeze(element.get("aria-label")) or squeeze(element.get("title"))):
            yield element, text


def _is_icon(picture: HtmlElement, text: str) -> bool:
    width = (picture.get("width") or "").strip().removesuffix("px")
    return (
        int(width) <= _MIN_PICTURE
        if width.isascii() and width.isdigit() and len(width) < 6
        else len(text) <= _MAX_NAME
    )
