"""Reads a PDF as a page."""

from servers.common.documents.pdf import Pdf

from .page import Metadata, Page, Source, describe

_TIME_SHARE = 0.6
"""Fraction of the time limit after which no further page is begun, so that the current one can be finished."""


def read_pdf_page(source: Source) -> Page:
    """Return the text of the requested pages, each after its number, as far as the time allows.

    Raises DocumentError like `Pdf`.
    """
    pdf = Pdf(source.body)
    facts = pdf.facts()
    metadata = Metadata(title=facts.title, description=facts.subject, author=facts.author, published=facts.created)
    if source.format == "metadata":
        encrypted = True if pdf.is_encrypted else None
        return Page(
            describe(kind="pdf", pages=pdf.total, encrypted=encrypted, **facts._asdict()), "pdf", metadata=metadata
        )
    text, notes = pdf.read(source.pages, source.seconds * _TIME_SHARE)
    return Page(text, "pdf", metadata=metadata, notes=notes)
