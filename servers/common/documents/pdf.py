"""Reads the text of a PDF, page by page."""

import re
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from io import BytesIO
from typing import NamedTuple

from pypdf import PdfReader
from pypdf.errors import DependencyError, PyPdfError

from .document import DocumentError, Facts
from .page_ranges import choose_pages, format_ranges

MAX_PAGES = 2_000
"""Maximum number of pages that are read."""
MAX_CHARACTERS = 5_000_000
"""Number of characters after which no further page is read."""
_MAX_FACT_LENGTH = 1_000
"""Maximum length of a property in characters."""
# The exceptions that pypdf raises for damaged files.
_DAMAGE_ERRORS = (PyPdfError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
# Ligatures of two or three letters (Unicode, Alphabetic Presentation Forms). A search for a word would miss them.
_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})
_WORDS = re.compile(r"\w+(?:-\w+)*")
# A hyphenated word at the end of a line: its first part, the hyphen, its second part, and the punctuation after it.
_HYPHENATED = re.compile(r"([^\W\d_]+)([-\u00ad\u2010])[ \t]*\n[ \t]*([^\W\d_]+)([^\s\w]*)[ \t]?")


class PdfText(NamedTuple):
    """The text of some pages, each below a line with its number, and notes for the reader."""

    text: str
    notes: tuple[str, ...]


class Pdf:
    """An open PDF, with the total number of its pages."""

    def __init__(self, body: bytes) -> None:
        """Open a PDF. Raises DocumentError with code `unreadable` if it needs a password or is damaged."""
        try:
            self._reader = PdfReader(BytesIO(body))
            self.total = len(self._reader.pages)
        except DependencyError:
            raise DocumentError("unreadable", "the PDF is encrypted in a way that can't be read here") from None
        except PyPdfError as error:
            needs_password = "decrypt" in str(error).lower()
            reason = "the PDF needs a password" if needs_password else "the PDF is damaged"
            raise DocumentError("unreadable", reason) from None

    @property
    def is_encrypted(self) -> bool:
        """True if the PDF is encrypted. It was then opened with the empty password."""
        return self._reader.is_encrypted

    def facts(self) -> Facts:
        """Return the properties that the file declares."""
        try:
            metadata = self._reader.metadata
        except _DAMAGE_ERRORS:
            metadata = None
        if metadata is None:
            return Facts()
        return Facts(
            title=_property_text(lambda: metadata.title),
            author=_property_text(lambda: metadata.author),
            subject=_property_text(lambda: metadata.subject),
            created=_property_text(lambda: metadata.creation_date),
            modified=_property_text(lambda: metadata.modification_date),
        )

    def read(self, requested: str | None, timeout: float) -> PdfText:
        """Return the `requested` pages that can be read within `timeout` seconds; a note lists the rest.

        Raises DocumentError with code `bad_argument` if `requested` is wrong (see `choose_pages`).
        """
        deadline = time.monotonic() + timeout
        numbers = choose_pages(requested, self.total)
        texts: list[str] = []
        characters_left, damaged = MAX_CHARACTERS, 0
        for number in numbers[:MAX_PAGES]:
            if characters_left < 0 or time.monotonic() > deadline:
                break
            try:
                text = self._reader.pages[number - 1].extract_text().strip()
            except _DAMAGE_ERRORS:
                damaged += 1
                text = ""
            characters_left -= len(text)
            texts.append(text)
        read, unread = numbers[: len(texts)], numbers[len(texts) :]
        notes = []
        if unread:
            shown = format_ranges(read) or "none"
            notes.append(
                f'Of {self.total} pages, these were read: {shown}. Continue with pages="{format_ranges(unread)}".'
            )
        if damaged:
            notes.append(f"Damaged pages, which are left out: {damaged}.")
        elif texts and not any(texts):
            notes.append("No page contains text: the pages may be scanned images.")
        heads = (f"[page {number} of {self.total}]" for number in read)
        cleaned = clean_texts(texts)
        return PdfText(
            "\n\n".join(f"{head}\n\n{text}".rstrip() for head, text in zip(heads, cleaned, strict=True)), tuple(notes)
        )


def clean_texts(texts: list[str]) -> list[str]:
    """Return the texts of pages without ligatures, and with the words joined that are hyphenated at the end of a
    line.

    Two parts of a word are joined if the second begins with a lowercase letter, if both are in capitals, or if the
    hyphen is a soft one. The hyphen is kept if the word occurs in the texts more often with it than without it.
    """
    texts = [text.translate(_LIGATURES) for text in texts]
    words = Counter(word for text in texts for word in _WORDS.findall(text))

    def join(match: re.Match[str]) -> str:
        first, hyphen, second, after = match.groups()
        compound = f"{first}-{second}"
        is_continuation = second[0].islower() or (first.isupper() and second.isupper())
        if not is_continuation and hyphen != "\u00ad":
            return match[0]
        keep_hyphen = hyphen != "\u00ad" and words[compound] > words[first + second]
        return f"{compound if keep_hyphen else first + second}{after}\n"

    return [_HYPHENATED.sub(join, text) for text in texts]


def _property_text(get: Callable[[], object]) -> str:
    try:
        value = get()
    except _DAMAGE_ERRORS:
        return ""
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value)[:_MAX_FACT_LENGTH].strip() if value else ""
