"""Which kind of document a file is, by its bytes alone, without unpacking anything."""

from typing import Literal

from servers.common.documents.document import DocumentError

DocumentKind = Literal["word", "sheets", "slides", "opendocument", "epub"]
DOCUMENTS: tuple[DocumentKind, ...] = ("word", "sheets", "slides", "opendocument", "epub")

MEDIA_TYPES: dict[DocumentKind, str] = {
    "word": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "sheets": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "slides": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "opendocument": "application/vnd.oasis.opendocument.text",
    "epub": "application/epub+zip",
}
_MAIN_PARTS: dict[bytes, DocumentKind] = {
    b"word/document": "word",
    b"xl/workbook": "sheets",
    b"ppt/presentation": "slides",
}
_LOCAL, _END = b"PK\x03\x04", b"PK\x05\x06"
_END_LENGTH = 22
_OPENDOCUMENT = b"application/vnd.oasis.opendocument."
_COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""The beginning of files of Office 97 to 2003, and of newer ones with a password (MS-CFB, section 2.2)."""
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")


def document_kind(body: bytes) -> tuple[DocumentKind, str] | None:
    """Return the kind and media type of a document in a zip archive; None for anything else.

    Raises DocumentError for what is known and can't be read here: `unsupported_type` for older and binary formats,
    `unreadable` for a file with a password.
    """
    if body.startswith(_COMPOUND):
        if _ENCRYPTED in body:
            raise DocumentError("unreadable", "the file needs a password")
        reason = "the file has the format of Office 97 to 2003 (.doc, .xls, .ppt, .msg), which can't be read here"
        raise DocumentError("unsupported_type", reason, "Convert it to .docx, .xlsx, .pptx or PDF first.")
    if not body.startswith(_LOCAL):
        return None
    # EPUB and OpenDocument begin with an entry `mimetype` that is not compressed; its name ends at byte 38.
    if body[30:38] == b"mimetype":
        media_type = body[38:150]
        if media_type.startswith(b"application/epub+zip"):
            return "epub", MEDIA_TYPES["epub"]
        for form in (b"text", b"spreadsheet", b"presentation"):
            if media_type.startswith(_OPENDOCUMENT + form):
                return "opendocument", (_OPENDOCUMENT + form).decode("ascii")
    names = _directory(body)
    if b"[Content_Types].xml" not in names:
        return None
    if b"xl/workbook.bin" in names:
        reason = "the file is an Excel workbook in binary form (.xlsb), which can't be read here"
        raise DocumentError("unsupported_type", reason, "Convert it to .xlsx first.")
    for sign, kind in _MAIN_PARTS.items():
        if sign in names:
            return kind, MEDIA_TYPES[kind]
    return None


def _directory(body: bytes) -> bytes:
    """The central directory of a zip archive, which has the names of its entries as they are."""
    end = body.rfind(_END)
    if end < 0 or end + _END_LENGTH > len(body):
        return b""
    length = int.from_bytes(body[end + 12 : end + 16], "little")
    return body[max(end - length, 0) : end]
