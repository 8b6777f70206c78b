"""Documents of Office, OpenDocument and EPUB as pages: all of their text, since nothing around it is furniture."""

from collections.abc import Callable
from functools import partial

from lxml.etree import Element
from lxml.html import HtmlElement

from servers.common.documents.document import Document
from servers.common.documents.kinds import DocumentKind
from servers.common.html.markup.footnotes import mark_footnotes
from servers.common.html.markup.hidden import remove_hidden
from servers.common.html.tree import HEADINGS, flatten, length, parse, squeeze
from servers.common.html.writer import write
from servers.fetch.read.html.links import list_links
from servers.fetch.read.html.sections import find_section
from servers.fetch.read.page import Found, Page, Removed, Source, describe

_CUT = "The document has too many elements or levels of them; what comes after is left out."
_MOST_HEADINGS = 500
_MOST_CHARACTERS = 5_000_000
_LONGEST_CELL = 1_000
"""Characters that a cell of a sheet may have: the writer takes a table with longer ones for the layout of a page."""


def document_reader(kind: DocumentKind) -> Callable[[Source], Page]:
    """Return what reads documents of a kind, its library loaded."""
    if kind == "word":
        from servers.common.documents.word import read_word

        return partial(_read, lambda source: read_word(source.body))
    if kind == "sheets":
        from servers.common.documents.sheets import read_sheets

        return partial(_read, lambda source: read_sheets(source.body, source.section))
    if kind == "slides":
        from servers.common.documents.slides import read_slides

        return partial(_read, lambda source: read_slides(source.body, source.pages))
    if kind == "epub":
        from servers.common.documents.epub import read_epub

        return partial(_read, lambda source: read_epub(source.body))
    from servers.common.documents.opendocument import read_opendocument

    return partial(_read, lambda source: read_opendocument(source.body, source.pages, source.section))


def _read(read: Callable[[Source], Document], source: Source) -> Page:
    document = read(source)
    root, whole = parse(document.html)
    if "sheets" in document.counts:
        _put_long_cells_below(root)
    removed = Removed(*remove_hidden(root))
    mark_footnotes(root)
    flatten(root)
    facts = document.facts
    found = Found(facts.title, facts.subject, facts.language, facts.author, published=facts.created)
    parts = find_section(root, source.section) if source.section else [root.find("body")]
    notes = [*document.notes, *(() if whole else (_CUT,))]
    if source.format == "links":
        text, left = list_links(parts, source.url, source.url)
        notes += [f"{left} more links are left out."] if left else []
    elif source.format == "metadata":
        headings = [
            f"{'#' * int(one.tag[1])} {squeeze(one.text_content())}" for part in parts for one in part.iter(*HEADINGS)
        ]
        outline = headings[:_MOST_HEADINGS] or None
        text = describe(kind=source.kind.name, **document.counts, **facts._asdict(), outline=outline)
    else:
        plain = source.format == "text"
        text = "\n\n".join(write(part, source.url, source.url, plain=plain) for part in parts)
        if len(text) > _MOST_CHARACTERS:
            text = text[:_MOST_CHARACTERS]
            notes.append(f"Only the first {_MOST_CHARACTERS:,} characters are given.")
    return Page(text, source.kind.name, found=found, removed=removed, notes=tuple(notes))


def _put_long_cells_below(root: HtmlElement) -> None:
    """Has the text of each long cell stand below its table, under a number that stands in the cell."""
    for table in root.iter("table"):
        cells = [cell for cell in table.iter("td", "th") if length(cell) > _LONGEST_CELL]
        for number, cell in reversed(list(enumerate(cells, 1))):
            text = Element("div")
            text.text = f"({number}) {cell.text or ''}"
            text[:] = list(cell)
            cell.text = f"({number})"
            table.addnext(text)
