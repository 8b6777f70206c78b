"""What stands around the content of a page: by its tag, its role or the names that programs give it; and what is
about other pages: teasers, lists of titles, paragraphs that are one link.

Names are compared by their words: trafilatura compares parts of them, and so takes a `barcode` for a bar.
"""

import re
from functools import lru_cache
from itertools import pairwise

from lxml.html import HtmlElement

from servers.fetch.read.html.tree import BLOCKS, HEADINGS, Span, Texts, names_in

_TAGS = frozenset(("nav", "footer", "menu", "dialog", "iframe", "select", "datalist", "textarea"))
_AROUND_BUTTONS = ("p", "li", "dd", "td", *HEADINGS)
_ROLES = names_in(
    "navigation search contentinfo complementary banner dialog alertdialog menu menubar toolbar tablist"
)
_NAMES = names_in("""
    ad ads adsense adslot adv advert advertisement author avatar banner basket breadcrumb breadcrumbs byline
    caption captions carousel cart comment comments consent cookie cookies copyright credit credits crosssell
    crumb crumbs cta date dates disqus editsection feedback footer gdpr helpful jumpbox latest login menu modal
    nav navbar navbox navi navigation newsletter newsletters outbrain overlay pager pagination paginator popular popup
    postmeta print profile promo promotion published rail readmore recirc recommend recommendation
    recommendations recommended related replies respond share shares sharing sidebar signup skip slider
    slideshow social sponsor sponsored subscribe subscription swiper taboola taglist tags teaser timestamp toc
    toolbar trending upsell vote votes widget wishlist
""")
_INTRODUCTIONS = names_in("""
    abstract chapo deck dek desc description excerpt intro introduction lead lede sapo standfirst subhead subheading
    subheadline subtitle summary
""")
_NEVER = frozenset(("body", "caption", "figcaption", "a", *HEADINGS))
"""What its names say little of: a heading may be an anchor below a navbar."""
_ABOUT = re.compile(r"(?<![\w-])(?:has|is|with|without|no|not)-[\w-]+")
"""A name that says what an element has, and not what it is."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_ALL = 0.9
"""The share of links in a heading that is one."""
_LISTS = frozenset(("div", "section", "ul", "ol", "aside", "td"))
_FEWEST = 3
_TITLE = 15
"""Characters of a link that is the title of another page."""
_LABEL = 25
"""Characters before such a link that only say that there is one."""
_BRACKETS = re.compile(r"[()\[\]\s.|•›»→▶]*")
"""What may stand around such a link and says nothing."""
_ADDRESSES = ("http://", "https://", "www.")
"""What the text of a link begins with that names its source, and is no title."""
_PARAGRAPHS = frozenset(("p", "div", "section", "center", *HEADINGS[1:]))


def is_around(element: HtmlElement) -> bool:
    """Whether an element is navigation, comments, advertisements, or another thing that stands around content."""
    tag = element.tag
    if tag == "button":
        # The questions of many an FAQ are buttons, and a sentence may have one in it.
        return element.getparent().tag not in _AROUND_BUTTONS
    if tag in _TAGS:
        return True
    if tag in _NEVER:
        return False
    for name, value in element.items():
        if name == "role" and value in _ROLES:
            return True
        if name == "aria-hidden" and value == "true":
            return True
        words = _words(value) & _NAMES if name in ("class", "id") else None
        # The contents of a book are no way through the page.
        if words and (words != {"toc"} or next(element.iter("a"), None) is not None):
            return True
    return False


def introduces(element: HtmlElement) -> bool:
    """Whether an element is named as the sentence under a headline is."""
    return not _INTRODUCTIONS.isdisjoint(_words(element.get("class") or ""))


@lru_cache(maxsize=8192)
def _words(names: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(_ABOUT.sub("", names)))


# About other pages


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
    if element.tag == "p":
        return _has_lines_of_pages(texts, element)
    if element.tag == "span":
        return _opens(texts, element)
    if element.tag not in _LISTS:
        return False
    titled = [_is_titled(texts, child, span) for child in element if (span := texts.spans[child])[0] < span[1]]
    return sum(titled) >= _FEWEST and 3 * sum(titled) > 2 * len(titled)


def _has_lines_of_pages(texts: Texts, element: HtmlElement) -> bool:
    """Whether each line of a paragraph is the title of another page, but for a label above them."""
    start, end = texts.spans[element]
    ends = (texts.spans[one][0] for one in element.iter("br"))
    lines = [line for line in pairwise(sorted({start, *ends, end})) if texts.size(line) > 0]
    if lines and not texts.linked(lines[0]) and texts.size(lines[0]) <= _LABEL:
        del lines[0]
    return len(lines) >= _FEWEST and all(_is_line_of_page(texts, line) for line in lines)


def _is_line_of_page(texts: Texts, line: Span) -> bool:
    linked = texts.linked(line)
    if linked < _TITLE or texts.size(line) - linked > _LABEL:
        return False
    first = texts.holder(line[0])
    link = next((one for one in (first, *first.iterancestors("a")) if one.tag == "a"), None)
    return link is not None and _leads_elsewhere(link) and not texts.said(line).lstrip().startswith(_ADDRESSES)


def _opens(texts: Texts, element: HtmlElement) -> bool:
    """Whether there are nothing but links to other pages in the middle of a sentence: they open over a name in it."""
    start, end = span = texts.spans[element]
    if not 0 < texts.size(span) == texts.linked(span):
        return False
    line = texts.lines[start]
    within = texts.lines[start - 1 : start] == [line] and texts.lines[end : end + 1] == [line]
    links = [one for one in element if one.tag == "a" and _leads_elsewhere(one) and texts.within((one,)) >= _TITLE]
    return within and len(links) >= _FEWEST


def is_list_of_tags(texts: Texts, element: HtmlElement) -> bool:
    """Whether an element holds what a page is filed under, and nothing but a label besides."""
    span = texts.spans[element]
    linked = texts.linked(span)
    if element.tag == "a" or 2 * linked < texts.size(span):
        return False
    links = list(element.iter("a"))
    if len(links) < _FEWEST or not all("tag" in (one.get("rel") or "").split() for one in links):
        return False
    # In short messages such a link is a word of the sentence.
    if any(texts.said(texts.spans[one]).lstrip().startswith("#") for one in links):
        return False
    return texts.size(span) - linked <= _LABEL + len(links)


def _is_titled(texts: Texts, element: HtmlElement, span: Span) -> bool:
    first = texts.holder(span[0])
    link = next((one for one in (first, *first.iterancestors()) if one.tag == "a" or one is element), first)
    if link.tag != "a" or not _leads_elsewhere(link) or texts.within((link,)) < _TITLE:
        return False
    end = texts.spans[link][1]
    return end >= span[1] or texts.lines[end] != texts.lines[end - 1]


def leads_away(texts: Texts, element: HtmlElement) -> bool:
    """Whether a paragraph is one link to another page, with nothing or a label before it."""
    if element.tag not in _PARAGRAPHS or texts.linked(texts.spans[element]) < _TITLE:
        return False
    if next(element.iterdescendants(*BLOCKS), None) is not None:
        return False
    links = list(element.iter("a"))
    if len(links) != 1 or not _leads_elsewhere(links[0]):
        return False
    (start, end), (first, last) = texts.spans[element], texts.spans[links[0]]
    if texts.said((first, last)).lstrip().startswith(_ADDRESSES):
        return False
    label, rest = texts.said((start, first)).rstrip(), texts.said((last, end))
    if _BRACKETS.fullmatch(label + rest):
        return True
    return len(label) + len(rest) <= _LABEL and label.endswith((":", "\uff1a"))


def _leads_elsewhere(link: HtmlElement) -> bool:
    return not (link.get("href") or "#").startswith("#")
