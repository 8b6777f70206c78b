"""Detects the kind of a document by its bytes, without unpacking its archive."""

import re
from typing import Literal

from .document import DocumentError

DocumentKind = Literal["word", "sheets", "slides", "opendocument", "epub"]
DOCUMENTS: tuple[DocumentKind, ...] = ("word", "sheets", "slides", "opendocument", "epub")

ZIP_START, _ZIP_END = b"PK\x03\x04", b"PK\x05\x06"
"""The first bytes of a zip archive, and of the record at its end."""
_ZIP_END_BYTES = 22
"""Minimum size of the record at the end of a zip archive, in bytes."""
_OFFICE = "application/vnd.openxmlformats-officedocument."
_MAIN_PARTS: dict[bytes, tuple[DocumentKind, str]] = {
    b"word/document": ("word", f"{_OFFICE}wordprocessingml.document"),
    b"xl/workbook": ("sheets", f"{_OFFICE}spreadsheetml.sheet"),
    b"ppt/presentation": ("slides", f"{_OFFICE}presentationml.presentation"),
}
_OPENDOCUMENT = "application/vnd.oasis.opendocument."
_MIMETYPE = rb"mimetypeapplication/vnd\.oasis\.opendocument\.(text|spreadsheet|presentation)"
COMPOUND_FILE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""The first bytes of Office 97 to 2003 files, and of newer ones with a password (MS-CFB, section 2.2)."""
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")


def document_kind(body: bytes) -> tuple[DocumentKind, str] | None:
    """Return the kind and media type of a document that is a zip archive; None for anything else.

    Raises DocumentError for formats that are known but can't be read: with code `unsupported_type` for older and
    binary formats, `unreadable` for a file with a password.
    """
    if body.startswith(COMPOUND_FILE):
        if _ENCRYPTED in body:
            raise DocumentError("unreadable", "the file needs a password")
        reason = "the file is in a format of Office 97 to 2003 (.doc, .xls, .ppt, .msg), which can't be read here"
        raise DocumentError("unsupported_type", reason, "Convert it to .docx, .xlsx, .pptx or PDF first.")
    end = body.rfind(_ZIP_END) if body.startswith(ZIP_START) else -1
    names = b""
    if 0 <= end <= len(body) - _ZIP_END_BYTES:
        # The central directory of a zip archive has the names of its entries uncompressed.
        length = int.from_bytes(body[end + 12 : end + 16], "little")
        names = body[max(end - length, 0) : end]
    if b"META-INF/container.xml" in names:
        return "epub", "application/epub+zip"
    if b"META-INF/manifest.xml" in names and b"content.xml" in names:
        # The entry `mimetype` is stored without compression, so its text directly follows its name.
        mimetype = re.search(_MIMETYPE, body)
        return "opendocument", f"{_OPENDOCUMENT}{mimetype[1].decode('ascii') if mimetype else 'text'}"
    if b"[Content_Types].xml" not in names:
        return None
    if b"xl/workbook.bin" in names:
        reason = "the file is an Excel workbook in binary form (.xlsb), which can't be read here"
        raise DocumentError("unsupported_type", reason, "Convert it to .xlsx first.")
    return next((kind for part, kind in _MAIN_PARTS.items() if part in names), None)
