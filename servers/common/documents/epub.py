"""Converts EPUB books to HTML, with the chapters in their reading order (EPUB 3.3, section 5.7)."""

import re
from html import escape
from html.entities import html5
from posixpath import dirname, join, normpath
from urllib.parse import unquote, urlsplit

from lxml import etree
from lxml.html import HTMLParser, document_fromstring

from .document import Document, DocumentError
from .package import Package, facts_of, parse_xml

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_CIPHER = "{http://www.w3.org/2001/04/xmlenc#}CipherReference"
_OPF = "{http://www.idpf.org/2007/opf}"
_REFERENCE = re.compile(rb"&([A-Za-z][A-Za-z0-9]*;)")
_XML_ENTITIES = frozenset((b"amp;", b"lt;", b"gt;", b"quot;", b"apos;"))
_XHTML = ("application/xhtml+xml", "text/html")


def read_epub(body: bytes) -> Document:
    """Return all chapters. Links between them work within the text, and pictures are replaced by their descriptions.

    Raises DocumentError with code `unreadable`, for example for an encrypted book.
    """
    package = Package(body)
    root_file = next(package.xml(_CONTAINER).iter("{*}rootfile"), None)
    if root_file is None:
        raise DocumentError("unreadable", "the book is damaged: it lists no content")
    name = root_file.get("full-path") or ""
    opf = package.xml(name)
    items = {item.get("id"): item for item in opf.iter(f"{_OPF}item")}
    spine = [items[entry.get("idref")] for entry in opf.iter(f"{_OPF}itemref") if entry.get("idref") in items]
    chapters = [_resolve(name, item.get("href") or "") for item in spine if item.get("media-type") in _XHTML]
    if _ENCRYPTION in package.names:
        encrypted = {unquote(entry.get("URI") or "") for entry in package.xml(_ENCRYPTION).iter(_CIPHER)}
        if encrypted.intersection(chapters):
            raise DocumentError("unreadable", "the book is encrypted, and needs a license to be read")
    present = [chapter for chapter in dict.fromkeys(chapters) if chapter in package.names]
    numbers = {chapter: number for number, chapter in enumerate(present, 1)}
    html = "".join(_chapter(package.read(chapter), chapter, numbers) for chapter in present)
    missing = len(set(chapters)) - len(present)
    notes = (f"Left out: {missing} chapters that are missing from the file.",) if missing else ()
    return Document(html, facts_of(opf), {"chapters": len(present)}, notes)


def _chapter(text: bytes, name: str, numbers: dict[str, int]) -> str:
    """Return the body of a chapter as HTML, with ids that are unique in the book."""
    try:
        root = parse_xml(_REFERENCE.sub(_expand_reference, text))
    except DocumentError:  # many books are not well-formed XML, but are shown anyway
        root = document_fromstring(text.decode("utf-8", "replace").encode(), parser=HTMLParser(encoding="utf-8"))
    for element in root.iter("*"):
        element.tag = etree.QName(element).localname
    etree.cleanup_namespaces(root)
    body = root.find("body")
    if body is None:
        return ""
    for element in body.iter("*"):
        if element.get("id"):
            element.set("id", f"c{numbers[name]}-{element.get('id')}")
        if element.tag == "a" and element.get("href"):
            url = urlsplit(element.get("href"))
            # Keep a link to another site. Let a link to a place in a chapter lead there, and remove other links.
            if url.scheme or url.netloc:
                continue
            target = numbers.get(_resolve(name, url.path) if url.path else name)
            if target and url.fragment:
                element.set("href", f"#c{target}-{url.fragment}")
            else:
                del element.attrib["href"]
        elif element.tag == "img":
            alt = " ".join((element.get("alt") or "").split())
            element.attrib.clear()
            element.tag = "em"
            element.text = f"Picture: {alt}" if alt else None
    parts = [escape(body.text or ""), *(etree.tostring(child, method="html", encoding="unicode") for child in body)]
    return f"<section>{''.join(parts)}</section>"


def _resolve(base: str, link: str) -> str:
    return normpath(join("/", dirname(base), unquote(link))).lstrip("/")


def _expand_reference(match: re.Match[bytes]) -> bytes:
    """Replace a named character reference of HTML. XML itself knows only five names, and the document type, which
    would define the others, is not read."""
    name = match[1]
    return (
        match[0]
        if name in _XML_ENTITIES
        else html5.get(name.decode("ascii"), "").encode("ascii", "xmlcharrefreplace")
    )
