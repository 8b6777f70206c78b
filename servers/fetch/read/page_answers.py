"""Converts a page to the response of the process that has read it, and back."""

from servers.common.workers.frames import Head
from shared.text import join_lines

from ..errors import CODES, FetchError
from .page import Metadata, Page, RemovedCounts


def make_head(page: Page) -> Head:
    """Return a page as the head of a response. Its text follows as the body. No image is sent."""
    fields = page._asdict() | {"metadata": page.metadata._asdict(), "removed": page.removed._asdict()}
    del fields["text"], fields["image"]
    return {"page": fields}


def make_page(head: Head, body: bytes) -> Page:
    """Return the page in a response, which is as untrusted as the page itself. Raises the FetchError that the
    response contains, if any, or FetchError with code `unreadable` if the response is malformed.
    """
    try:
        if "error" in head:
            code, reason, suggestion, quoted = map(str, head["error"])
            raise FetchError(code if code in CODES else "unreadable", reason, suggestion, quoted=quoted)
        fields = head["page"]
        fields["text"] = body.decode()
        fields["metadata"] = Metadata(**fields["metadata"])
        fields["removed"] = RemovedCounts(**fields["removed"])
        fields["notes"] = tuple(join_lines(str(note)) for note in fields["notes"])
        fields["omitted_headings"] = tuple(join_lines(str(heading)) for heading in fields["omitted_headings"])
        return Page(**fields)
    except (LookupError, TypeError, ValueError):
        raise FetchError("unreadable", "the process that read the page crashed") from None
