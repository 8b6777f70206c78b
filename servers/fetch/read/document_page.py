"""Reads Office, OpenDocument and EPUB documents as pages, with all of their text: none of it is boilerplate."""

from collections.abc import Callable
from functools import partial

from servers.common.documents.kinds import DocumentKind
from servers.common.documents.reading import DocumentReader, document_reader, visible_document
from servers.common.html.tree import HEADINGS, squeeze
from servers.common.html.writer import write
from shared.text import format_count

from .html.links import list_links
from .html.sections import find_section
from .page import Metadata, Page, RemovedCounts, Source, describe

_MAX_HEADINGS = 500
"""Maximum number of headings in the metadata."""
_MAX_CHARACTERS = 5_000_000
"""Maximum number of characters of a document's text."""


def page_reader(kind: DocumentKind) -> Callable[[Source], Page]:
    """Return a function that reads documents of this kind as pages. Imports the library for the kind."""
    return partial(_read_document, document_reader(kind))


def _read_document(read: DocumentReader, source: Source) -> Page:
    document = read(source.body, source.pages, source.section)
    visible = visible_document(document)
    facts = document.facts
    metadata = Metadata(facts.title, facts.subject, facts.language, facts.author, published=facts.created)
    parts = find_section(visible.root, source.section) if source.section else [visible.body]
    notes = list(visible.notes)
    if source.format == "links":
        text, omitted = list_links(parts, source.url, source.url)
        notes += [f"{format_count(omitted, 'more link')} left out."] if omitted else []
    elif source.format == "metadata":
        headings = [
            f"{'#' * int(heading.tag[1])} {squeeze(heading.text_content())}"
            for part in parts
            for heading in part.iter(*HEADINGS)
        ]
        outline = headings[:_MAX_HEADINGS] or None
        text = describe(kind=source.kind.name, **document.counts, **facts._asdict(), outline=outline)
    else:
        is_plain = source.format == "text"
        text = "\n\n".join(write(part, source.url, source.url, plain=is_plain) for part in parts)
        if len(text) > _MAX_CHARACTERS:
            text = text[:_MAX_CHARACTERS]
            notes.append(f"Only the first {_MAX_CHARACTERS:,} characters are returned.")
    return Page(
        text, source.kind.name, metadata=metadata, removed=RemovedCounts(*visible.removed), notes=tuple(notes)
    )
