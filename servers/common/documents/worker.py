"""The program of the worker process that converts documents to text (see `servers.common.workers`)."""

from collections.abc import Callable, Sequence

from shared.text import quote_name

from ..html.invisible import strip_invisible
from ..workers.frames import Head
from ..workers.serving import FileReader, serve
from .document import DocumentError
from .kinds import DocumentKind

_MAX_CHARACTERS = 5_000_000
"""Maximum length of a text that is returned, in characters."""
_TIME_SHARE = 0.6
"""The share of the timeout after which no further page of a PDF is begun. The rest is for the page in progress."""

TextReader = Callable[[Head, bytes], tuple[str, tuple[str, ...]]]
"""Takes the requested `media_type` and `pages`, and a file; returns the text and notes about it."""


def main(timeout: float, mebibytes: int, requests: int) -> None:
    """Convert up to `requests` documents. Each may take `timeout` seconds, and `mebibytes` of memory."""

    def load(kind: str) -> FileReader:
        read = pdf_reader(timeout) if kind == "pdf" else text_reader(kind)  # type: ignore[arg-type]

        def answer(head: Head, body: bytes) -> tuple[Head, bytes]:
            text, notes = read(head, body)
            visible_text, _ = strip_invisible(text)
            if len(visible_text) > _MAX_CHARACTERS:
                visible_text = visible_text[:_MAX_CHARACTERS]
                notes = (*notes, f"Only the first {_MAX_CHARACTERS:,} characters are returned.")
            return {"notes": notes}, visible_text.encode("utf-8", "replace")

        return answer

    serve(load, "document", timeout, mebibytes, requests)


def pdf_reader(timeout: float) -> TextReader:
    """Return a reader for PDFs. It begins no page after `_TIME_SHARE` of the `timeout` in seconds."""
    from .pdf import Pdf

    return lambda head, body: Pdf(body).read(head["pages"], timeout * _TIME_SHARE)


def text_reader(kind: DocumentKind) -> TextReader:
    """Import the libraries for one kind of documents, and return a reader for it."""
    from ..html.writer import write
    from .reading import document_reader, visible_document

    read = document_reader(kind)

    def text(head: Head, body: bytes) -> tuple[str, tuple[str, ...]]:
        pages, sheet = choose_part(kind, head["media_type"], head["pages"])
        document = read(body, pages, sheet)
        visible = visible_document(document)
        if sheet is not None:
            require_sheet(sheet, [title.text_content() for title in visible.root.iter("h2")], document.hidden_sheets)
        return write(visible.body, "", ""), visible.notes

    return text


def choose_part(kind: DocumentKind, media_type: str, pages: str | None) -> tuple[str | None, str | None]:
    """Return page ranges and the name of a sheet, one of which is `pages` and the other None, depending on the
    document.

    Raises DocumentError with code `bad_argument` if the document has neither pages nor sheets.
    """
    if pages is None or kind == "slides" or media_type.endswith(".presentation"):
        return pages, None
    if kind == "sheets" or media_type.endswith(".spreadsheet"):
        return None, pages
    raise DocumentError("bad_argument", "the document has no pages to choose from", "Omit pages.")


def require_sheet(sheet: str, names: Sequence[str], hidden: Sequence[str]) -> None:
    """Raise DocumentError with code `bad_argument` and the names of all sheets if the requested `sheet` was not
    found.

    `names` are the sheets that were read: only the requested one, or all visible ones if it was not found.
    """
    if names != [sheet]:
        listed = [*map(_quote_name, names), *(f"{_quote_name(name)} (hidden)" for name in hidden)]
        visible_text = ", ".join(listed[:20])
        raise DocumentError(
            "bad_argument", "the workbook has no sheet with that name", f"Its sheets: {visible_text}."
        )


def _quote_name(name: str) -> str:
    return quote_name(name[:100])
