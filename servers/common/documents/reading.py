"""Reads documents of any kind except PDF as HTML, and reduces the HTML to its visible part."""

from collections.abc import Callable
from typing import NamedTuple

from lxml.etree import Element
from lxml.html import HtmlElement

from ..html.tree import length, parse
from ..html.visible import keep_visible
from .document import Document
from .kinds import DocumentKind

DocumentReader = Callable[[bytes, str | None, str | None], Document]
"""Takes the bytes of a file, page ranges (`pages`), and the name of a sheet (`section`). Most kinds ignore the latter
two."""

_CUT_NOTE = "The document has too many elements or nesting levels; the rest is left out."
_MAX_CELL = 1_000
"""Maximum length of a cell in a sheet, in characters. A row is one line in Markdown, and longer cells would make it
hard to read."""


def document_reader(kind: DocumentKind) -> DocumentReader:
    """Import and return the reader for one kind of documents. The reader raises DocumentError."""
    if kind == "word":
        from .word import read_word

        return lambda body, pages, section: read_word(body)
    if kind == "sheets":
        from .sheets import read_sheets

        return lambda body, pages, section: read_sheets(body, section)
    if kind == "slides":
        from .slides import read_slides

        return lambda body, pages, section: read_slides(body, pages)
    if kind == "epub":
        from .epub import read_epub

        return lambda body, pages, section: read_epub(body)
    from .opendocument import read_opendocument

    return read_opendocument


class VisibleDocument(NamedTuple):
    """The visible part of a document."""

    root: HtmlElement
    removed: tuple[int, int]
    """The numbers of hidden elements and of invisible characters that were removed."""
    notes: tuple[str, ...]
    """The notes of the document, and one more if parts of its tree were left out."""

    @property
    def body(self) -> HtmlElement:
        """The element that `servers.common.html.writer.write` converts to Markdown."""
        return self.root.find("body")


def visible_document(document: Document) -> VisibleDocument:
    """Parse a document, and keep only its visible part. The text of long cells in sheets is moved below the table."""
    root, is_complete = parse(document.html)
    if "sheets" in document.counts:
        # The cell keeps only a number. Its text follows the table, after the same number.
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
