"""What is taken out of the content of a page again: what stands around it all the same."""

from lxml.html import HtmlElement

from servers.fetch.reading.html.boilerplate import is_around
from servers.fetch.reading.html.leading import is_list_of_pages, leads_away
from servers.fetch.reading.html.texts import Texts

__all__ = ["trim"]

_LITTLE = 0.2
"""The share of the content that an element may have, and be none by its name."""
_BEFORE = 0.05
"""The same of what stands before the headline."""
_LIST = 0.4
"""The same of a list of other pages."""


def trim(texts: Texts) -> None:
    """Take out of the content what is around it, lists of other pages, and paragraphs that only lead to one."""
    texts.count()
    total = texts.content(texts.spans[texts.root])
    _trim_within(texts, texts.root, total)
    _trim_before(texts, total)


def _trim_before(texts: Texts, total: int) -> None:
    """Take out what little stands before the headline: the way there, a category, who wrote it."""
    for headline in texts.root.iter("h1"):
        start, end = texts.spans[headline]
        if any(texts.kept[start:end]):
            if texts.content((0, start)) < _BEFORE * total:
                texts.put((0, start), kept=False)
            return


def _trim_within(texts: Texts, element: HtmlElement, total: int) -> None:
    for child in element:
        span = texts.spans[child]
        content = texts.content(span)
        if not content or child.tag in ("pre", "code"):
            continue
        if (content < _LITTLE * total and (is_around(child) or leads_away(texts, child))) or (
            content < _LIST * total and is_list_of_pages(texts, child)
        ):
            texts.put(span, kept=False)
        else:
            _trim_within(texts, child, total)
