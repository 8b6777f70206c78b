"""The process that reads pages, which `servers.common.workers` manages."""

from collections.abc import Callable

from servers.common.documents.kinds import DOCUMENTS
from servers.common.html.invisible import strip_invisible
from servers.common.workers.frames import Head
from servers.common.workers.serving import FileReader, serve

from ..errors import FetchError
from .page import Kind, KindName, Metadata, Page, RemovedCounts, Source
from .page_answers import make_head


def load_reader(kind: KindName) -> Callable[[Source], Page]:
    """Return the function that reads one kind of pages, and import its modules."""
    if kind == "html":
        from .html.page import read_html_page

        return read_html_page
    if kind == "json":
        from .json_page import read_json

        return read_json
    if kind == "feed":
        from .feed_page import read_feed

        return read_feed
    if kind == "markdown":
        from .markdown_page import read_markdown

        return read_markdown
    if kind == "pdf":
        from .pdf_page import read_pdf_page

        return read_pdf_page
    if kind in DOCUMENTS:
        from .document_page import page_reader

        return page_reader(kind)
    from .text import read_text

    return read_text


def main(timeout: float, mebibytes: int, requests: int) -> None:
    """Read up to `requests` pages, until the input ends. Each may take `timeout` seconds and `mebibytes`."""

    def load(name: str) -> FileReader:
        read: Callable[[Source], Page] = load_reader(name)  # type: ignore[arg-type]

        def answer(head: Head, body: bytes) -> tuple[Head, bytes]:
            kind, parts = Kind(head["kind"], head["media_type"]), (head["section"], head["pages"])
            source = Source(kind, head["charset"], head["url"], head["format"], *parts, timeout, body)
            try:
                page = read(source)
            except FetchError as error:
                quoted, _ = strip_invisible(error.quoted)
                return {"error": [error.code, error.reason, error.suggestion, quoted]}, b""
            if page.kind != "html":  # the reader of HTML has stripped the text
                shown, characters = strip_invisible(page.text)
                page = page._replace(text=shown, removed=RemovedCounts(characters=characters))
            page = page._replace(metadata=Metadata(*(strip_invisible(fact)[0] for fact in page.metadata)))
            return make_head(page), page.text.encode("utf-8", "replace")

        return answer

    serve(load, "page", timeout, mebibytes, requests)
