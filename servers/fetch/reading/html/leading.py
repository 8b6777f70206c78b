"""What of a page is about other pages: teasers, lists of titles, paragraphs that are one link."""

from lxml.html import HtmlElement

from servers.fetch.reading.html.texts import Span, Texts
from servers.fetch.reading.html.tree import BLOCKS, HEADINGS

__all__ = ["is_list_of_pages", "is_teaser", "leads_away"]

_ALL = 0.9
"""The share of links in a heading that is one."""
_LISTS = frozenset(("div", "section", "ul", "ol", "aside", "td"))
_FEWEST = 3
_TITLE = 15
"""Characters of a link that is the title of another page."""
_LABEL = 25
"""Characters before such a link that only say that there is one."""
_PARAGRAPHS = frozenset(("p", "div", "section", "center", *HEADINGS[1:]))


def is_teaser(texts: Texts, element: HtmlElement) -> bool:
    """Whether the first heading in an element is a link to another page."""
    heading = next((one for one in element.iter(*HEADINGS) if texts.within((one,))), None)
    if heading is None:
        return False
    links = (*heading.iter("a"), *heading.iterancestors("a"))
    span = texts.spans[heading]
    return texts.linked(span) >= _ALL * texts.size(span) and any(map(_leads_elsewhere, links))


def is_list_of_pages(texts: Texts, element: HtmlElement) -> bool:
    """Whether most of what an element holds begins with the title of another page, as a link."""
    if element.tag not in _LISTS:
        return False
    titled = [_is_titled(texts, child, span) for child in element if (span := texts.spans[child])[0] < span[1]]
    return sum(titled) >= _FEWEST and 3 * sum(titled) > 2 * len(titled)


def _is_titled(texts: Texts, element: HtmlElement, span: Span) -> bool:
    first = texts.holder(span[0])
    link = next((one for one in (first, *first.iterancestors()) if one.tag == "a" or one is element), first)
    if link.tag != "a" or not _leads_elsewhere(link) or texts.within((link,)) < _TITLE:
        return False
    end = texts.spans[link][1]
    return end >= span[1] or texts.lines[end] != texts.lines[end - 1]


def leads_away(texts: Texts, element: HtmlElement) -> bool:
    """Whether a paragraph is one link to another page, with nothing or a label before it."""
    if element.tag not in _PARAGRAPHS:
        return False
    span = texts.spans[element]
    linked = texts.linked(span)
    other = texts.size(span) - linked
    if linked < _TITLE or other > _LABEL or next(element.iterdescendants(*BLOCKS), None) is not None:
        return False
    links = list(element.iter("a"))
    if len(links) != 1 or not _leads_elsewhere(links[0]):
        return False
    return not other or texts.places[span[0]][2].rstrip().endswith((":", "\uff1a"))


def _leads_elsewhere(link: HtmlElement) -> bool:
    return not (link.get("href") or "#").startswith("#")
