"""Converts Word documents to HTML with mammoth.

mammoth ignores some of the XML, so it gets a changed copy: formulas become text, hidden text is removed, and the
first row of a table becomes its header if the table says so (ECMA-376, part 1, section 17.4.55).
"""

import re
from io import BytesIO
from xml.parsers.expat import ExpatError
from zipfile import ZipFile

import mammoth
from lxml import etree
from lxml.etree import _Element as Element
from mammoth import html
from mammoth.documents import Image

from .document import Document, DocumentError, left_out_notes
from .formulas import tex_of
from .package import Package, text_of

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}oMath"
_CHARTS = (
    "{http://schemas.openxmlformats.org/drawingml/2006/chart}chart",
    "{http://schemas.openxmlformats.org/drawingml/2006/diagram}relIds",
)
_FORMULA = "Formula"
_STYLES = f"""
r.{_FORMULA} => math
p[style-name='Title'] => h1:fresh
p[style-name='Subtitle'] => p > em:fresh
p[style-name='Quote'] => blockquote > p:fresh
p[style-name='Intense Quote'] => blockquote > p:fresh
p[style-name='HTML Preformatted'] => pre:separator('\\n')
p[style-name='Preformatted Text'] => pre:separator('\\n')
p[style-name='Source Code'] => pre:separator('\\n')
p[style-name='Code'] => pre:separator('\\n')
p[style-name='Block Text'] => blockquote > p:fresh
p[style-name='Quotations'] => blockquote > p:fresh
p[style-name='Plain Text'] => p:fresh
r[style-name='HTML Code'] => code
r[style-name='Verbatim Char'] => code
r[style-name='Source Text'] => code
"""
_NOTE_REFERENCE = re.compile(r'(<sup><a href="#(?:foot|end)note-\d+"[^>]*>)\[(\d+)\](</a></sup>)')
_LINK_BACK = re.compile(r' <a href="#(?:foot|end)note-ref-\d+">↑</a>')
"""Matches the link back to the reference that mammoth writes after each note."""
_DAMAGE_ERRORS = (AttributeError, ExpatError, LookupError, OSError, TypeError, ValueError)
_FALSE_VALUES = ("0", "false", "off")


def read_word(body: bytes) -> Document:
    """Return the text with its headings, lists, tables, links, notes and formulas. Pictures are replaced by their
    descriptions.

    Raises DocumentError with code `unreadable`.
    """
    package = Package(body)
    main = package.main_part()
    prepared_copy = BytesIO()
    left_out: dict[str, int] = {}
    with ZipFile(prepared_copy, "w") as archive:
        for name in package.names:
            if name.endswith((".xml", ".rels")) or name == main:
                needs_preparation = name == main or name.endswith(("/footnotes.xml", "/endnotes.xml"))
                archive.writestr(
                    name, _prepare(package.xml(name), left_out) if needs_preparation else package.read(name)
                )
    try:
        result = mammoth.convert_to_html(
            prepared_copy, style_map=_STYLES, include_embedded_style_map=False, convert_image=_describe_picture
        )
    except _DAMAGE_ERRORS:
        raise DocumentError("unreadable", "the document is damaged") from None
    comments = next(
        (relation.target for relation in package.relations(main).values() if relation.kind == "comments"), ""
    )
    if comments in package.names:
        left_out["comments"] = len(package.xml(comments))
    html = _NOTE_REFERENCE.sub(r"\1\2\3", _LINK_BACK.sub("", result.value))
    return Document(html, package.facts(), notes=tuple(left_out_notes(left_out)))


def _prepare(root: Element, left_out: dict[str, int]) -> bytes:
    for formula in list(root.iter(_MATH)):
        run = etree.Element(f"{_W}r")
        properties = etree.SubElement(run, f"{_W}rPr")
        etree.SubElement(properties, f"{_W}rStyle").set(f"{_W}val", _FORMULA)
        etree.SubElement(run, f"{_W}t").text = tex_of(formula)
        _replace(formula, run)
    for mark in list(root.iter(f"{_W}vanish")):
        run = mark.getparent().getparent()
        if run is not None and run.tag == f"{_W}r" and mark.get(f"{_W}val") not in _FALSE_VALUES:
            hidden = text_of(run)
            left_out["hidden texts"] = left_out.get("hidden texts", 0) + bool(hidden)
            run[:] = []
    for table in root.iter(f"{_W}tbl"):
        _mark_header_row(table)
    charts = sum(1 for _ in root.iter(*_CHARTS))
    left_out["charts and diagrams"] = left_out.get("charts and diagrams", 0) + charts
    return bytes(etree.tostring(root, encoding="utf-8", xml_declaration=True))


def _replace(element: Element, replacement: Element) -> None:
    ancestor = element.getparent()
    # A paragraph of formulas, which mammoth does not support.
    while ancestor.tag.startswith(_MATH.removesuffix("oMath")):
        if ancestor.getparent() is None:
            return
        ancestor.tag = f"{_W}smartTag"
        ancestor = ancestor.getparent()
    element.getparent().replace(element, replacement)
    replacement.tail = None


def _mark_header_row(table: Element) -> None:
    look, first_row = table.find(f"{_W}tblPr/{_W}tblLook"), table.find(f"{_W}tr")
    if look is None or first_row is None or next(table.iter(f"{_W}tblHeader"), None) is not None:
        return
    value = look.get(f"{_W}val") or "0"
    has_header = look.get(f"{_W}firstRow") == "1" or bool(value.isalnum() and int(value, 16) & 0x20)
    if has_header and len(table.findall(f"{_W}tr")) > 1:
        properties = first_row.find(f"{_W}trPr")
        if properties is None:
            properties = etree.Element(f"{_W}trPr")
            first_row.insert(0, properties)
        etree.SubElement(properties, f"{_W}tblHeader")


def _describe_picture(image: Image) -> list[object]:
    alt = " ".join((image.alt_text or "").split())
    return [html.element("em", {}, [html.text(f"Picture: {alt}")])] if alt else []
