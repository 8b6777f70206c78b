"""A document that has been read, and the error for one that can't be read."""

from typing import NamedTuple

from shared.coded_errors import CodedError


class DocumentError(CodedError):
    """Raised for a file that can't be read, or that lacks the requested part.

    The codes are `unsupported_type`, `unreadable`, `bad_argument` and, if libraries are missing, `not_installed`.
    """


class Facts(NamedTuple):
    """The properties that a document declares, empty if it does not. Dates are in ISO 8601."""

    title: str = ""
    author: str = ""
    subject: str = ""
    language: str = ""
    created: str = ""
    modified: str = ""


class Document(NamedTuple):
    """A document as HTML: headings, paragraphs, lists and tables of a body, without scripts and styles."""

    html: str
    facts: Facts
    counts: dict[str, int] = {}  # noqa: RUF012 - nobody changes it
    """The numbers of pages, sheets or slides."""
    notes: tuple[str, ...] = ()
    """Sentences for the reader, such as which parts are left out. They quote nothing from the document."""
    hidden_sheets: tuple[str, ...] = ()
    """The names of hidden sheets. A hidden sheet is only read if it is requested by name."""


def left_out_notes(counts: dict[str, int]) -> list[str]:
    """Return a note that lists the omitted parts with their counts; no note if nothing was omitted."""
    summary = ", ".join(f"{kind} ({count})" for kind, count in counts.items() if count)
    return [f"Left out: {summary}."] if summary else []
