"""Converts PowerPoint presentations to HTML: for each slide a numbered heading, then its text, tables, charts and
notes.

This module parses the XML itself, because python-pptx depends on Pillow and an Excel writer, 25 MiB that reading does
not need.
"""

from collections.abc import Iterator
from html import escape

from lxml.etree import _Element as Element

from .charts import chart_html
from .document import Document, left_out_notes
from .formulas import tex_of
from .package import Package, text_of
from .page_ranges import choose_pages

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}chart"
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}oMath"
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}relIds"
_DIAGRAM_POINT = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}pt"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_TITLE_PLACEHOLDERS = ("title", "ctrTitle")
_TEXT_PLACEHOLDERS = ("body", "obj")
_OMITTED_PLACEHOLDERS = ("dt", "ftr", "sldNum", "sldImg", "hdr")
"""Types of placeholders for headers, footers, dates and slide numbers, and for the small picture of the slide above
its notes."""
MAX_SLIDES = 2_000
"""Maximum number of slides that are read."""


def read_slides(body: bytes, pages: str | None = None) -> Document:
    """Return the slides in `pages`, or all if it is None. Hidden slides are left out.

    Raises DocumentError with code `unreadable`, or `bad_argument` if `pages` are wrong (see `choose_pages`).
    """
    package = Package(body)
    main = package.main_part()
    relations = package.relations(main)
    entries = [entry.get(f"{_R}id") or "" for entry in package.xml(main).iter(f"{_P}sldId")]
    names = [relations[entry].target for entry in entries if entry in relations]
    numbers = choose_pages(pages, len(names))
    parts, hidden = [], 0
    for number in numbers[:MAX_SLIDES]:
        slide = package.xml(names[number - 1])
        if slide.get("show") in ("0", "false"):
            hidden += 1
            continue
        parts.append(_Slide(package, names[number - 1], slide).write(number))
    notes = left_out_notes({"hidden slides": hidden})
    if len(numbers) > MAX_SLIDES:
        notes.append(
            f"The first {MAX_SLIDES:,} slides were read: continue with pages={numbers[MAX_SLIDES]}-{numbers[-1]}."
        )
    return Document("".join(parts), package.facts(), {"slides": len(names)}, tuple(notes))


class _Slide:
    def __init__(self, package: Package, name: str, root: Element) -> None:
        self._package, self.root = package, root
        self._relations = package.relations(name)

    def write(self, number: int) -> str:
        shapes = list(_shapes(self.root))
        title = next((text_of(shape) for shape in shapes if _placeholder(shape) in _TITLE_PLACEHOLDERS), "")
        head = f"<h2>Slide {number}{': ' if title else ''}{escape(title)}</h2>"
        rest = [
            self.shape_html(shape) for shape in shapes if not title or _placeholder(shape) not in _TITLE_PLACEHOLDERS
        ]
        relation = next((candidate for candidate in self._relations.values() if candidate.kind == "notesSlide"), None)
        notes = ""
        if relation is not None and relation.target in self._package.names:
            notes_slide = _Slide(self._package, relation.target, self._package.xml(relation.target))
            notes = "".join(notes_slide.shape_html(shape) for shape in _shapes(notes_slide.root))
        return "".join([head, *rest, f"<p><strong>Notes:</strong></p>{notes}" if notes else ""])

    def shape_html(self, shape: Element) -> str:
        if _placeholder(shape) in _OMITTED_PLACEHOLDERS:
            return ""
        table, chart = next(shape.iter(f"{_A}tbl"), None), next(shape.iter(_CHART), None)
        if table is not None:
            return self._table(table)
        if chart is not None:
            root = self._find_related(chart.get(f"{_R}id"))
            return "" if root is None else chart_html(root)
        if (diagram := next(shape.iter(_DIAGRAM), None)) is not None:
            root = self._find_related(diagram.get(f"{_R}dm"))
            points = [] if root is None else [text_of(point) for point in root.iter(_DIAGRAM_POINT)]
            return f"<ul>{''.join(f'<li>{escape(point)}</li>' for point in points if point)}</ul>"
        has_bullets = _placeholder(shape) in _TEXT_PLACEHOLDERS
        text = "".join(self._body(body, has_bullets) for body in shape.iter(f"{_P}txBody"))
        properties = next(shape.iter(f"{_P}cNvPr"), None)
        description = " ".join((properties.get("descr") or "").split()) if properties is not None and not text else ""
        return text or (f"<p><em>Picture: {escape(description)}</em></p>" if description else "")

    def _body(self, body: Element, has_bullets: bool) -> str:
        """Return the paragraphs and nested lists of a text body. If `has_bullets`, a paragraph is a list item unless
        it has no bullet."""
        parts: list[str] = []
        lists: list[str] = []
        for paragraph in body.findall(f"{_A}p"):
            html = self._inline_html(paragraph)
            if not html:
                continue
            level, tag = _find_level(paragraph, has_bullets)
            level = min(level, len(lists) + 1)
            while len(lists) > level:
                parts.append(f"</li></{lists.pop()}>")
            if lists and len(lists) == level:
                parts.append("</li><li>")
            while len(lists) < level:
                lists.append(tag)
                parts.append(f"<{tag}><li>")
            parts.append(html if level else f"<p>{html}</p>")
        return "".join([*parts, *(f"</li></{tag}>" for tag in reversed(lists))])

    def _find_related(self, id: str | None) -> Element | None:
        relation = self._relations.get(id or "")
        return self._package.xml(relation.target) if relation and relation.target in self._package.names else None

    def _inline_html(self, paragraph: Element) -> str:
        parts = []
        for run in paragraph:
            if run.tag == f"{_A}br":
                parts.append("<br>")
            parts += (f"<math>{escape(tex_of(formula))}</math>" for formula in run.iter(_MATH))
            text = escape("".join(part.text or "" for part in run.findall(f"{_A}t")))
            link = run.find(f"{_A}rPr/{_A}hlinkClick")
            relation = self._relations.get(link.get(f"{_R}id") or "") if link is not None else None
            if text and relation is not None and relation.external:
                text = f'<a href="{escape(relation.target)}">{text}</a>'
            parts.append(text)
        return "".join(parts).strip()

    def _table(self, table: Element) -> str:
        rows = []
        for index, row in enumerate(table.findall(f"{_A}tr")):
            tag = "td" if index else "th"
            cells = []
            for cell in row.findall(f"{_A}tc"):
                if cell.get("hMerge") or cell.get("vMerge"):
                    cells.append(f"<{tag}></{tag}>")
                else:
                    texts = (self._inline_html(paragraph) for paragraph in cell.iter(f"{_A}p"))
                    cells.append(f"<{tag}>{'<br>'.join(filter(None, texts))}</{tag}>")
            rows.append(f"<tr>{''.join(cells)}</tr>")
        return f"<table>{''.join(rows)}</table>"


def _shapes(root: Element) -> Iterator[Element]:
    """Yield all visible shapes of a slide in the order of the file, including those in groups."""
    for shape in root.iter(f"{_P}sp", f"{_P}pic", f"{_P}graphicFrame"):
        properties = next(shape.iter(f"{_P}cNvPr"), None)
        is_hidden = properties is not None and properties.get("hidden") in ("1", "true")
        if not is_hidden and next(shape.iterancestors(_FALLBACK), None) is None:
            yield shape


def _placeholder(shape: Element) -> str:
    """Return the type of a placeholder, "obj" if it declares none; "" if the shape is no placeholder."""
    holder = next(shape.iter(f"{_P}ph"), None)
    return "" if holder is None else holder.get("type") or "obj"


def _find_level(paragraph: Element, has_bullets: bool) -> tuple[int, str]:
    """Return the depth of the list that contains a paragraph, 0 if it is in no list, and the tag of the list."""
    properties = paragraph.find(f"{_A}pPr")
    if properties is None:
        return int(has_bullets), "ul"
    level = int(properties.get("lvl") or 0)
    numbered = properties.find(f"{_A}buAutoNum") is not None
    is_bulleted = has_bullets or numbered or properties.find(f"{_A}buChar") is not None
    is_item = is_bulleted and properties.find(f"{_A}buNone") is None
    return (level + 1 if is_item else 0), ("ol" if numbered else "ul")
