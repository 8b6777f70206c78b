"""Converts documents to text. A worker process with limited time and memory does it, because a document may be
malicious."""

import json
from functools import cached_property
from importlib.util import find_spec
from typing import NamedTuple

from shared.text import join_lines

from ..workers import pool
from .document import DocumentError
from .kinds import COMPOUND_FILE, ZIP_START, document_kind

LIBRARIES = ("lxml", "mammoth", "openpyxl", "pypdf")
"""The packages that the extra `documents` installs."""
MAX_BYTES = 64_000_000
"""Maximum size of a document, in bytes."""
SIGNATURE_BYTES = 16
"""Number of bytes at the start of a file that `may_be_document` needs."""
_PDF = b"%PDF-"
_CODES = ("unsupported_type", "unreadable", "bad_argument")


class DocumentText(NamedTuple):
    """The text of a document, and notes about it. The notes quote nothing from the document."""

    text: str
    notes: tuple[str, ...] = ()


def may_be_document(start: bytes) -> bool:
    """Return True if a file with this start may be a document: a PDF, a zip archive, or a file of an older Office."""
    return start.startswith((_PDF, ZIP_START, COMPOUND_FILE))


def require_libraries() -> None:
    """Raise DocumentError with code `not_installed` if a library is missing."""
    if any(find_spec(library) is None for library in LIBRARIES):
        reason = "reading documents needs packages that are not installed"
        raise DocumentError("not_installed", reason, "Install the extra 'documents'.")


class DocumentTexts:
    """Converts documents in a worker process, which the first document starts."""

    def __init__(self, limits: "pool.Limits | None" = None) -> None:
        self._limits = limits

    @cached_property
    def _pool(self) -> "pool.Pool":
        # `pool` is imported lazily: this is its first use.
        limits = self._limits or pool.Limits(timeout=10, mebibytes=512)
        return pool.Pool(pool.Program(f"{__package__}.worker", "document"), 1, limits)

    async def read(self, body: bytes, pages: str | None = None) -> DocumentText:
        """Return the text of a document, or of some of its `pages`. Raises DocumentError.

        `pages` is a list of page or slide ranges, or the name of a sheet.
        """
        detected = ("pdf", "application/pdf") if body.startswith(_PDF) else document_kind(body)
        if detected is None:
            raise DocumentError("unsupported_type", "the file is not a document that can be read as text")
        require_libraries()
        kind, media_type = detected
        try:
            answer, text = await self._pool.ask(kind, {"media_type": media_type, "pages": pages}, body)
            # A malicious document may control the worker, so its response is untrusted as well.
            if isinstance(error := answer.get("error"), list):
                code, reason, suggestion = (join_lines(str(part)) for part in (*error, "", "", "")[:3])
                raise DocumentError(code if code in _CODES else "unreadable", reason, suggestion)
            notes = answer.get("notes")
            if not isinstance(notes, list):
                raise DocumentError("unreadable", f"the worker answered {json.dumps(sorted(answer))[:100]}")
            return DocumentText(text.decode("utf-8", "replace"), tuple(join_lines(str(note)) for note in notes))
        except pool.WorkerError as error:
            raise DocumentError(error.code, error.reason) from None

    async def close(self) -> None:
        """Stop the worker."""
        if "_pool" in vars(self):
            await self._pool.close()
