"""The text of a PDF, page by page."""

import time
from collections.abc import Callable
from datetime import datetime
from io import BytesIO

from pypdf import PdfReader
from pypdf.errors import DependencyError, PyPdfError

from servers.fetch.errors import FetchError
from servers.fetch.read.page import Found, Page, Source, describe

MAX_PAGES = 2_000
MAX_CHARACTERS = 5_000_000
# The rest of the time is for the page that is being read when this is over.
_SHARE_OF_TIME = 0.6
# What pypdf lets out of a damaged file, besides its own errors.
_DAMAGED = (PyPdfError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def read_pdf(source: Source) -> Page:
    """The text of all pages, each after its number, as far as the time allows.

    Raises FetchError `unreadable` where the file needs a password, or is damaged.
    """
    deadline = time.monotonic() + source.seconds * _SHARE_OF_TIME
    try:
        reader = PdfReader(BytesIO(source.body))
        total = len(reader.pages)
    except DependencyError:
        raise FetchError("unreadable", "the PDF is encrypted in a way that can't be read here") from None
    except PyPdfError as error:
        needs_password = "decrypt" in str(error).lower()
        reason = "the PDF needs a password" if needs_password else "the PDF is damaged"
        raise FetchError("unreadable", reason) from None
    found, facts = _about(reader)
    if source.format == "metadata":
        encrypted = True if reader.is_encrypted else None
        return Page(describe(kind="pdf", pages=total, encrypted=encrypted, **facts), "pdf", found=found)
    text, notes = _text(reader, total, deadline)
    return Page(text, "pdf", found=found, notes=notes)


def _text(reader: PdfReader, total: int, deadline: float) -> tuple[str, tuple[str, ...]]:
    parts: list[str] = []
    room, damaged, empty = MAX_CHARACTERS, 0, 0
    for number in range(1, total + 1):
        if number > MAX_PAGES or room < 0 or time.monotonic() > deadline:
            return "\n\n".join(parts), (f"Only the first {number - 1} of {total} pages were read.",)
        try:
            text = reader.pages[number - 1].extract_text().strip()
        except _DAMAGED:
            damaged += 1
            text = ""
        empty += not text
        room -= len(text)
        parts.append(f"[page {number} of {total}]\n\n{text}".rstrip())
    notes = []
    if damaged:
        notes.append(f"{damaged} of {total} pages are damaged.")
    elif empty == total:
        notes.append("No page holds text: they may be scanned images.")
    return "\n\n".join(parts), tuple(notes)


def _about(reader: PdfReader) -> tuple[Found, dict[str, str]]:
    try:
        about = reader.metadata
    except _DAMAGED:
        about = None
    if about is None:
        return Found(), {}
    facts = {
        "title": _known(lambda: about.title),
        "author": _known(lambda: about.author),
        "subject": _known(lambda: about.subject),
        "created": _known(lambda: about.creation_date),
        "modified": _known(lambda: about.modification_date),
    }
    found = Found(title=facts["title"], author=facts["author"], published=facts["created"])
    return found._replace(description=facts["subject"]), facts


def _known(get: Callable[[], object]) -> str:
    try:
        value = get()
    except _DAMAGED:
        return ""
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value)[:1_000].strip() if value else ""
