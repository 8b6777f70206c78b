"""Reads documents of any kind: the text as HTML, and its visible tree."""

from collections.abc import Callable
from typing import NamedTuple

from lxml.etree import Element
from lxml.html import HtmlElement

from servers.common.documents.document import Document
from servers.common.documents.kinds import DocumentKind
from servers.common.html.tree import length, parse
from servers.common.html.visible import keep_visible

DocumentReader = Callable[[bytes, str | None, str | None], Document]
"""Takes the file, and the requested `pages` and `section` (the name of a sheet), which most kinds ignore."""

_CUT_NOTE = "The document has too many elements or nesting levels; the rest is left out."
_MAX_CELL = 1_000
"""Maximum length of a sheet's cell, in characters: longer ones make a row, one line in Markdown, hard to read."""


def document_reader(kind: DocumentKind) -> DocumentReader:
    """Return the reader for one kind of documents, and import its library. The reader raises DocumentError."""
    if kind == "word":
        from servers.common.documents.word import read_word

        return lambda body, pages, section: read_word(body)
    if kind == "sheets":
        from servers.common.documents.sheets import read_sheets

        return lambda body, pages, section: read_sheets(body, section)
    if kind == "slides":
        from servers.common.documents.slides import read_slides

        return lambda body, pages, section: read_slides(body, pages)
    if kind == "epub":
        from servers.common.documents.epub import read_epub

        return lambda body, pages, section: read_epub(body)
    from servers.common.documents.opendocument import read_opendocument

    return read_opendocument


class VisibleDocument(NamedTuple):
    """The visible tree of a document."""

    root: HtmlElement
    removed: tuple[int, int]
    """Hidden elements and invisible characters that were removed."""
    notes: tuple[str, ...]
    """The document's notes, and one more if its tree was cut."""

    @property
    def body(self) -> HtmlElement:
        """The element that `servers.common.html.writer.write` converts to Markdown."""
        return self.root.find("body")


def visible_document(document: Document) -> VisibleDocument:
    """Parse a document and keep only its visible parts. Long cells of sheets are moved below their table."""
    root, is_complete = parse(document.html)
    if "sheets" in document.counts:
        # A number remains in the cell, and its text follows the table, after the same number.
        for table in root.iter("table"):
            cells = [cell for cell in table.iter("td", "th") if length(cell) > _MAX_CELL]
            for number, cell in reversed(list(enumerate(cells, 1))):
                text = Element("div")
                text.text = f"({number}) {cell.text or ''}"
                text[:] = list(cell)
                cell.text = f"({number})"
                table.addnext(text)
    removed = keep_visible(root)[:2]
    return VisibleDocument(root, removed, (*document.notes, *(() if is_complete else (_CUT_NOTE,))))
