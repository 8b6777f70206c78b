"""Converts OpenDocument 1.3 texts, spreadsheets and presentations to HTML.

The content of such a document is a tree of paragraphs, lists and tables, much like HTML. Cells contain their values
as text in the form in which they are displayed.
"""

from collections.abc import Callable, Iterator
from html import escape
from itertools import islice

from lxml import etree
from lxml.etree import _Element as Element

from .document import Document, DocumentError, Facts, left_out_notes
from .package import Package, facts_of, text_of
from .page_ranges import choose_pages

MAX_CELLS = 30_000
"""Maximum number of cells that are read, in all tables together."""
MAX_COLUMNS = 200
"""Maximum number of cells that are read in one row."""
_MAX_DEPTH = 100
"""Maximum depth of elements that are read."""
_URN = "{urn:oasis:names:tc:opendocument:xmlns:%s:1.0}"
_TEXT, _TABLE, _DRAW, _OFFICE = (_URN % name for name in ("text", "table", "drawing", "office"))
_STYLE, _SVG, _PRESENTATION = (_URN % name for name in ("style", "svg-compatible", "presentation"))
_FO = _URN % "xsl-fo-compatible"
_HREF = "{http://www.w3.org/1999/xlink}href"
_DATE = "{http://purl.org/dc/elements/1.1/}date"
_CREATED = f"{_URN % 'meta'}creation-date"
_AUTHOR = f"{_URN % 'meta'}initial-creator"
_MATH = "{http://www.w3.org/1998/Math/MathML}math"
_PARAGRAPHS = {
    "Title": ("<h1>", "</h1>"),
    "Quotations": ("<blockquote><p>", "</p></blockquote>"),
    "Preformatted_20_Text": ("<pre>", "</pre>"),
}
"""The HTML tags around a paragraph, by the name of its style in LibreOffice."""
_MAX_SPACES = 200
"""Maximum number of spaces that one element writes."""
_MANIFEST = "META-INF/manifest.xml"
_CUT_NOTE = (
    "The document has more cells, columns or levels than can be read; the rest is left out."
    " Ask for one sheet by name."
)


def read_opendocument(body: bytes, pages: str | None = None, sheet: str | None = None) -> Document:
    """Return the text, with a heading for each sheet or slide. If `pages` are given, only these slides are read; if
    `sheet` is given, only the sheet with this name.

    Raises DocumentError with code `unreadable`, or `bad_argument` if `pages` are wrong (see `choose_pages`) or there
    are no slides.
    """
    package = Package(body)
    if _MANIFEST in package.names and b"encryption-data" in package.read(_MANIFEST):
        raise DocumentError("unreadable", "the file needs a password")
    root = package.xml("content.xml")
    holder = root.find(f"{_OFFICE}body")
    content = next(iter(holder), None) if holder is not None else None
    if content is None:
        raise DocumentError("unreadable", "the file is damaged: it has no body")
    writer = _Writer(package, root)
    slides, sheets = content.findall(f"{_DRAW}page"), content.findall(f"{_TABLE}table")
    counts: dict[str, int] = {}
    if content.tag == f"{_OFFICE}presentation":
        counts = {"slides": len(slides)}
        chosen = choose_pages(pages, len(slides))
        html = "".join(writer.slide(number, slides[number - 1]) for number in chosen)
    elif pages is not None:
        raise DocumentError("bad_argument", "the document has no pages to choose from", "Omit pages.")
    elif content.tag == f"{_OFFICE}spreadsheet":
        counts = {"sheets": len(sheets)}
        requested = [table for table in sheets if table.get(f"{_TABLE}name") == sheet]
        html = "".join(map(writer.sheet, requested or sheets))
    else:
        html = writer.blocks(content)
    html = html.replace("</pre><pre>", "\n")
    return Document(html + writer.footnotes(), _facts(package), counts, writer.notes())


class _Style:
    """Whether a style makes text bold, italic or hidden."""

    def __init__(self, style: Element) -> None:
        properties = {name: value for child in style for name, value in child.items()}
        self.bold = properties.get(f"{_FO}font-weight") == "bold"
        self.italic = properties.get(f"{_FO}font-style") in ("italic", "oblique")
        self.hidden = (
            properties.get(f"{_TEXT}display") == "none"
            or properties.get(f"{_TABLE}display") == "false"
            or properties.get(f"{_PRESENTATION}visibility") == "hidden"
        )


class _Writer:
    def __init__(self, package: Package, root: Element) -> None:
        self._package = package
        self._styles = {
            style.get(f"{_STYLE}name"): _Style(style) for style in root.iter(f"{_STYLE}style") if len(style)
        }
        self._parent_styles = {
            style.get(f"{_STYLE}name"): style.get(f"{_STYLE}parent-style-name")
            for style in root.iter(f"{_STYLE}style")
        }
        list_styles = package.xml("styles.xml").iter(f"{_TEXT}list-style") if "styles.xml" in package.names else ()
        self._numbered_lists = {
            style.get(f"{_STYLE}name")
            for style in (*list_styles, *root.iter(f"{_TEXT}list-style"))
            if next(iter(style.iter(f"{_TEXT}list-level-style-number")), None) is not None
            and style[0].tag.endswith("-number")
        }
        self._footnotes: list[str] = []
        self._left_out: dict[str, int] = {}
        self._cells_left = MAX_CELLS
        self._depth = 0
        self._is_cut = False
        self._blocks: dict[str, Callable[[Element], str]] = {
            f"{_TEXT}h": self._heading,
            f"{_TEXT}p": self._paragraph,
            f"{_TEXT}list": lambda element: self._list(element, None),
            f"{_TABLE}table": self._table,
            f"{_DRAW}frame": self._frame,
            **dict.fromkeys((f"{_TEXT}tracked-changes", f"{_TEXT}sequence-decls", f"{_OFFICE}forms"), lambda _: ""),
            f"{_OFFICE}annotation": lambda _: self._count_left_out("comments"),
        }

    def blocks(self, element: Element) -> str:
        """Return the blocks in an element as HTML, including those in its sections, indexes and shapes."""
        if self._depth >= _MAX_DEPTH:
            self._is_cut = True
            return ""
        self._depth += 1
        html = "".join(
            self._blocks[child.tag](child) if child.tag in self._blocks else self.blocks(child) for child in element
        )
        self._depth -= 1
        return html

    def slide(self, number: int, page: Element) -> str:
        """Return a slide under its number and title, with its notes at the end."""
        if self._is_hidden(page, f"{_DRAW}style-name"):
            return self._count_left_out("hidden slides")
        frames = [frame for frame in page if frame.tag != f"{_PRESENTATION}notes"]
        titles = [frame for frame in frames if frame.get(f"{_PRESENTATION}class") == "title" and text_of(frame)]
        text = text_of(titles[0]) if titles else ""
        head = f"<h2>Slide {number}{': ' if text else ''}{escape(text)}</h2>"
        texts = "".join(self._frame(frame) for frame in frames if frame not in titles[:1])
        spoken = page.findall(f"{_PRESENTATION}notes/{_DRAW}frame")
        notes = "".join(self._frame(frame) for frame in spoken if frame.get(f"{_PRESENTATION}class") == "notes")
        return f"{head}{texts}{'<p><strong>Notes:</strong></p>' if notes else ''}{notes}"

    def sheet(self, table: Element) -> str:
        """Return a sheet under its name, unless it is hidden."""
        if self._is_hidden(table, f"{_TABLE}style-name"):
            return self._count_left_out("hidden sheets")
        return f"<h2>{escape(table.get(f'{_TABLE}name') or '')}</h2>{self._table(table)}"

    def footnotes(self) -> str:
        """Return the footnotes of the whole document."""
        items = (f'<li id="footnote-{number}">{note}</li>' for number, note in enumerate(self._footnotes, 1))
        return f"<ol>{''.join(items)}</ol>" if self._footnotes else ""

    def notes(self) -> tuple[str, ...]:
        """Return notes for the reader about omitted parts."""
        return (*left_out_notes(self._left_out), *((_CUT_NOTE,) if self._is_cut else ()))

    def _count_left_out(self, kind: str) -> str:
        """Count an omitted part, and return the empty HTML that replaces it."""
        self._left_out[kind] = self._left_out.get(kind, 0) + 1
        return ""

    def _find_style_name(self, element: Element) -> str:
        """Return the name of an element's style, or of its parent style: an automatic style, which a program made for
        a few changes, has the style that the user chose as its parent."""
        name = element.get(f"{_TEXT}style-name") or ""
        return self._parent_styles.get(name) or name

    def _is_hidden(self, element: Element, name: str) -> bool:
        style = self._styles.get(element.get(name))
        return style is not None and style.hidden

    def _heading(self, element: Element) -> str:
        level = element.get(f"{_TEXT}outline-level") or "1"
        rank = min(int(level), 6) if level.isdecimal() else 1
        return f"<h{rank}>{self._inline(element)}</h{rank}>"

    def _paragraph(self, element: Element) -> str:
        text = self._inline(element)
        after = "".join(map(self._frame, element.iter(f"{_DRAW}frame")))
        opening, closing = _PARAGRAPHS.get(self._find_style_name(element), ("<p>", "</p>"))
        return f"{opening}{text}{closing}{after}" if text.strip() else after

    def _list(self, element: Element, style: str | None) -> str:
        style = element.get(f"{_TEXT}style-name") or style
        tag = "ol" if style in self._numbered_lists else "ul"
        items = []
        for item in element:
            parts = (
                self._list(child, style)
                if child.tag == f"{_TEXT}list"
                else self._blocks.get(child.tag, self.blocks)(child)
                for child in item
            )
            items.append(f"<li>{''.join(parts)}</li>")
        return f"<{tag}>{''.join(items)}</{tag}>"

    def _inline(self, element: Element) -> str:
        parts = [escape(element.text or "")]
        for child in element:
            parts += self._inline_element(child), escape(child.tail or "")
        return "".join(parts)

    def _inline_element(self, element: Element) -> str:
        name = element.tag.removeprefix(_TEXT)
        if name == "s":
            return " " * min(int(element.get(f"{_TEXT}c") or 1), _MAX_SPACES)
        if name == "tab":
            return "\t"
        if name == "line-break":
            return "<br>"
        if name == "note":
            body = element.find(f"{_TEXT}note-body")
            self._footnotes.append("")
            number = len(self._footnotes)
            self._footnotes[number - 1] = self.blocks(body) if body is not None else ""
            return f'<sup><a href="#footnote-{number}">{number}</a></sup>'
        if element.tag == f"{_OFFICE}annotation":
            return self._count_left_out("comments")
        if element.tag == f"{_DRAW}frame":
            return self._formula(element)
        if element.tag.startswith((_DRAW, _OFFICE)):
            return ""
        text = self._inline(element)
        if name == "a":
            return f'<a href="{escape(element.get(_HREF) or "")}">{text}</a>'
        if name == "span" and self._find_style_name(element) == "Source_20_Text":
            return f"<code>{text}</code>"
        style = self._styles.get(element.get(f"{_TEXT}style-name")) if name == "span" else None
        if style is None or not text.strip():
            return text
        if style.hidden:
            return self._count_left_out("hidden texts")
        text = f"<strong>{text}</strong>" if style.bold else text
        return f"<em>{text}</em>" if style.italic else text

    def _frame(self, frame: Element) -> str:
        """Return the content of a frame: texts, a table, the data of a chart, or the description of a picture."""
        html = "".join(self.blocks(box) for box in frame.findall(f"{_DRAW}text-box"))
        html += "".join(map(self._table, frame.findall(f"{_TABLE}table")))
        root = self._embedded_object(frame)
        if root is not None and root.tag != _MATH:
            html += "".join(map(self._table, root.iter(f"{_TABLE}table")))
        if frame.tag != f"{_DRAW}frame":  # a shape
            html += self.blocks(frame)
        if html or (root is not None and root.tag == _MATH):
            return html
        descriptions = [frame.find(f"{_SVG}{name}") for name in ("desc", "title")]
        text = next((text for element in descriptions if element is not None and (text := text_of(element))), "")
        return f"<p><em>Picture: {escape(text)}</em></p>" if text else ""

    def _formula(self, frame: Element) -> str:
        root = self._embedded_object(frame)
        if root is None or root.tag != _MATH:
            return ""
        for element in root.iter("*"):
            element.tag = etree.QName(element).localname
        etree.cleanup_namespaces(root)
        return str(etree.tostring(root, encoding="unicode", with_tail=False))

    def _embedded_object(self, frame: Element) -> Element | None:
        entry = frame.find(f"{_DRAW}object")
        if entry is None:
            return None
        name = f"{(entry.get(_HREF) or '').removeprefix('./').rstrip('/')}/content.xml"
        return self._package.xml(name) if name in self._package.names else None

    def _table(self, table: Element) -> str:
        header_rows = {
            row for head in table.iter(f"{_TABLE}table-header-rows") for row in head.iter(f"{_TABLE}table-row")
        }
        rows: list[str] = []
        for row in table.iter(f"{_TABLE}table-row"):
            if next(row.iterancestors(f"{_TABLE}table")) is not table:
                continue
            cells = list(islice(self._list_cells(row), MAX_COLUMNS + 1))
            self._is_cut = self._is_cut or len(cells) > MAX_COLUMNS
            del cells[MAX_COLUMNS:]
            if not any(cells):
                continue
            # Repeated rows are stored only once in the file.
            times = int(row.get(f"{_TABLE}number-rows-repeated") or 1)
            more = min(times - 1, max(self._cells_left, 0) // len(cells))
            self._is_cut = self._is_cut or more < times - 1
            self._cells_left -= more * len(cells)
            for _ in range(1 + more):
                tag = "th" if row in header_rows or not rows else "td"
                rows.append(f"<tr>{''.join(f'<{tag}>{cell}</{tag}>' for cell in cells)}</tr>")
        return f"<table>{''.join(rows)}</table>" if rows else ""

    def _list_cells(self, row: Element) -> Iterator[str]:
        """Yield the HTML of a row's cells. Empty cells at the end of the row are left out, since programs fill rows
        with them up to the edge of the sheet."""
        empty = 0
        for cell in row.iter(f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"):
            if next(cell.iterancestors(f"{_TABLE}table-row")) is not row:
                continue
            text = self.blocks(cell) if self._cells_left > 0 else ""
            self._is_cut = self._is_cut or self._cells_left <= 0
            times = min(int(cell.get(f"{_TABLE}number-columns-repeated") or 1), MAX_COLUMNS)
            if not text:
                empty += times
                continue
            self._cells_left -= times
            yield from [""] * empty
            yield from [text] * times
            empty = 0


def _facts(package: Package) -> Facts:
    if "meta.xml" not in package.names:
        return Facts()
    root = package.xml("meta.xml")
    facts = facts_of(root)
    created, changed, author = (next(root.iter(tag), None) for tag in (_CREATED, _DATE, _AUTHOR))
    return facts._replace(
        author=facts.author or (text_of(author) if author is not None else ""),
        created=text_of(created) if created is not None else "",
        modified=text_of(changed) if changed is not None else "",
    )
