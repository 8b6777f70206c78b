"""Finds the kind of a page by its Content-Type, and by its first bytes if the type is too vague or can't be true.

The patterns are from the WHATWG MIME sniffing standard (https://mimesniff.spec.whatwg.org). Unlike a browser, this
server runs nothing and only has to guess whether a page can be read. So a page declared as a stream of bytes is
examined, and shown if it is text, a PDF or an image.
"""

import re
from urllib.parse import urlsplit

from servers.common.documents.document import DocumentError
from servers.common.documents.kinds import DOCUMENTS, document_kind
from servers.common.images import image_type

from ..errors import FetchError
from .charsets import read_start
from .page import Format, Kind, KindName

_FORMATS: dict[KindName, frozenset[Format]] = {
    "html": frozenset({"markdown", "text", "html", "json", "links", "metadata"}),
    "json": frozenset({"markdown", "text", "json", "metadata"}),
    "feed": frozenset({"markdown", "text", "json", "links", "metadata"}),
    "pdf": frozenset({"markdown", "text", "metadata"}),
    "markdown": frozenset({"markdown", "text", "links", "metadata"}),
    **dict.fromkeys(DOCUMENTS, frozenset[Format]({"markdown", "text", "links", "metadata"})),
    "text": frozenset({"markdown", "text", "metadata"}),
    "image": frozenset({"markdown", "text", "metadata"}),
}
_NAMES: dict[KindName, str] = {
    "html": "HTML",
    "json": "JSON",
    "feed": "a feed",
    "pdf": "a PDF",
    "markdown": "Markdown",
    "word": "a Word document",
    "sheets": "an Excel workbook",
    "slides": "a PowerPoint presentation",
    "opendocument": "an OpenDocument file",
    "epub": "an EPUB book",
    "text": "text",
    "image": "an image",
}
_WITH_PAGES: frozenset[KindName] = frozenset({"pdf", "slides", "opendocument"})
_WITH_SECTIONS: frozenset[KindName] = frozenset({"html", "json", "markdown", *DOCUMENTS})

_SIGNATURE_BYTES = 1_445
"""Number of bytes that are examined (MIME Sniffing Standard, 5.2)."""
_SIGNATURES = (
    (b"PK\x03\x04", "application/zip"),
    (b"\0asm", "application/wasm"),
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"OggS\0", "application/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"\x1aE\xdf\xa3", "video/webm"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"\0\0\x01\0", "image/x-icon"),
    (b"BM", "image/bmp"),
)
# These types are never text, so a file that happens to begin like text is not shown.
_NEVER_TEXT = re.compile(r"(?:audio|video|font|model)/|image/(?!svg\+xml)|application/(?:zip|wasm)$|.*\+zip$")
# Types without information, types of compressed files that are unpacked here, and the type of PDFs, which sites also
# declare for a login page that they send instead of a PDF.
_VAGUE_TYPES = {
    *("", "*/*", "unknown/unknown", "application/unknown", "application/octet-stream", "binary/octet-stream"),
    *("application/force-download", "application/x-download", "application/pdf"),
    *("application/gzip", "application/x-gzip", "application/gzip-compressed", "application/x-gunzip"),
}
_HTML_TYPES = {"text/html", "application/xhtml+xml"}
_MARKDOWN_FILE = re.compile(r"\.(?:md|markdown)$|/llms(?:-full)?\.txt$", re.IGNORECASE)
_JSON_FILE = re.compile(r"\.json$", re.IGNORECASE)
_HTML_TAGS = (
    b"!DOCTYPE HTML|HTML|HEAD|SCRIPT|IFRAME|H1|DIV|FONT|TABLE|A|STYLE|TITLE|B|BODY|BR|P"
    + b"|META|LINK|MAIN|ARTICLE|SECTION"
)
_HTML = re.compile(rb"<(?:" + _HTML_TAGS + rb")[\s>]", re.IGNORECASE)
# The part of XML before the first element: a declaration, comments, a document type.
_PROLOG = re.compile(rb"\s*(?:<\?[^>]*>\s*|<!--.*?-->\s*|<!DOCTYPE\s[^>\[]*>\s*)*", re.DOTALL | re.IGNORECASE)
_FEED = re.compile(rb"<(?:rss|feed|rdf:RDF)[\s>]")
_XHTML = re.compile(rb"<(?:html|xhtml:html)[\s>]", re.IGNORECASE)
_JSON = re.compile(rb'\s*(?:\{\s*["}]|\[\s*[\[\]{"])')
_JSON_ENDS = (b"}", b"]")
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")


def find_kind(media_type: str, body: bytes, url: str = "") -> Kind:
    """Return the kind of a body with the declared `media_type`, which is in lowercase, without parameters, and may be
    empty. For plain text, the name of the file in the `url` counts.

    Raises FetchError for a known type of document that can't be read (see `document_kind`).
    """
    first = read_start(body, _SIGNATURE_BYTES)
    is_binary = _BINARY.search(first) is not None
    recognized = _find_document(body) or _find_by_signature(body[:_SIGNATURE_BYTES], is_binary)
    if recognized is not None:
        return (
            Kind("other", media_type) if recognized.name == "other" and media_type not in _VAGUE_TYPES else recognized
        )
    if _NEVER_TEXT.match(media_type):
        return Kind("other", media_type)
    if media_type in _HTML_TYPES:
        return Kind(_find_html_kind(first, body), media_type)
    if is_binary:
        return Kind("other", media_type or "application/octet-stream")
    subtype = media_type.partition("/")[2].removeprefix("x-")
    if subtype in {"json", "ndjson", "jsonl", "jsonlines", "json-lines"} or subtype.endswith("+json"):
        return Kind("json", media_type)
    if media_type in {"text/xml", "application/xml"} or media_type.endswith("+xml"):
        return _find_xml_kind(media_type, first)
    if subtype == "markdown":
        return Kind("markdown", media_type)
    if media_type not in _VAGUE_TYPES:
        return Kind(_find_text_kind(media_type, url), media_type)
    if _HTML.match(first, _skip_prolog(first)) or _HTML.match(first.lstrip()):
        return Kind("html", "text/html")
    if _JSON.match(first):
        return Kind("json", "application/json")
    if first.lstrip().startswith(b"<?xml") or _FEED.match(first.lstrip()):
        return _find_xml_kind("application/xml", first)
    return Kind("text", "text/plain")


def as_source(kind: Kind) -> Kind:
    """Return the kind that shows a page as the text that the site sent; `kind` itself if the page is not text."""
    return kind._replace(name="text") if kind.name in {"html", "json", "feed", "markdown"} else kind


def check(kind: Kind, format: Format, section: str | None, pages: str | None, length: int) -> None:
    """Raise FetchError if a page of this kind, with `length` bytes, can't be converted to the format, or can't have
    the requested section or pages."""
    if kind.name == "other":
        reason = f'"{kind.media_type[:100]}", {length:,} bytes: it has no text that could be shown'
        suggestion = "Fetch a page that describes it, or download it with another program."
        raise FetchError("unsupported_type", reason, suggestion)
    formats = _FORMATS[kind.name]
    if format not in formats:
        reason = f'the page is {_NAMES[kind.name]} ("{kind.media_type}"), which can\'t be returned as {format}'
        raise FetchError("bad_argument", reason, f"Formats for it: {', '.join(sorted(formats))}.")
    if section is not None and kind.name not in _WITH_SECTIONS:
        reason = f'the page is {_NAMES[kind.name]} ("{kind.media_type}"), which has no sections'
        raise FetchError("bad_argument", reason, "Omit section.")
    if pages is not None and kind.name not in _WITH_PAGES:
        reason = f'the page is {_NAMES[kind.name]} ("{kind.media_type}"), which has no pages'
        raise FetchError("bad_argument", reason, "Omit pages.")


def _find_html_kind(first: bytes, body: bytes) -> KindName:
    """Return the kind of a body that is declared as HTML, as some sites declare everything."""
    if _JSON.match(first) and body.rstrip().endswith(_JSON_ENDS):
        return "json"
    return "feed" if _FEED.match(first, _skip_prolog(first)) else "html"


def _find_text_kind(media_type: str, url: str) -> KindName:
    """Return the kind of a body that is declared as text. raw.githubusercontent.com declares all text as plain."""
    path = urlsplit(url).path if media_type == "text/plain" else ""
    if _MARKDOWN_FILE.search(path):
        return "markdown"
    return "json" if _JSON_FILE.search(path) else "text"


def _find_document(body: bytes) -> Kind | None:
    try:
        kind = document_kind(body)
    except DocumentError as error:
        raise FetchError(error.code, error.reason, error.suggestion) from None
    return None if kind is None else Kind(*kind)


def _find_by_signature(first: bytes, is_binary: bool) -> Kind | None:
    if first.startswith(b"%PDF-") or (is_binary and b"%PDF-" in first[:1_024]):
        return Kind("pdf", "application/pdf")
    if not is_binary:  # text may begin with the same letters, such as BM
        return None
    shown = image_type(first)
    if shown is not None:
        return Kind("image", shown)
    detected = next((media_type for signature, media_type in _SIGNATURES if first.startswith(signature)), None)
    return None if detected is None else Kind("other", detected)


def _find_xml_kind(media_type: str, first: bytes) -> Kind:
    root = _skip_prolog(first)
    if _FEED.match(first, root):
        return Kind("feed", media_type)
    return Kind("html" if _XHTML.match(first, root) else "text", media_type)


def _skip_prolog(first: bytes) -> int:
    match = _PROLOG.match(first)
    return match.end() if match else 0
