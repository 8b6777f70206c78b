"""What stands around the content of a page, by its tag, its role or the names that programs give it, and what of that
is taken out of the content again.

Names are compared by their words: trafilatura compares parts of them, and so takes a `barcode` for a bar.
"""

import re
from functools import lru_cache

from lxml.html import HtmlElement

from servers.fetch.reading.html.leading import is_list_of_pages, is_list_of_tags, leads_away
from servers.fetch.reading.html.texts import Texts
from servers.fetch.reading.html.tree import BLOCKS, HEADINGS

__all__ = ["introduces", "is_around", "trim"]

_TAGS = frozenset(("nav", "footer", "menu", "dialog", "iframe", "select", "datalist", "textarea"))
_AROUND_BUTTONS = ("p", "li", "dd", "td", *HEADINGS)
_ROLES = frozenset(
    re.findall(
        r"\w+",
        "navigation search contentinfo complementary banner dialog alertdialog menu menubar toolbar tablist",
    )
)
_NAMES = frozenset(
    re.findall(
        r"\w+",
        """
    ad ads adsense adslot adv advert advertisement author avatar banner basket breadcrumb breadcrumbs byline
    caption captions carousel cart comment comments consent cookie cookies copyright credit credits crosssell
    crumb crumbs cta date dates disqus editsection feedback footer gdpr helpful jumpbox latest login menu modal
    nav navbar navbox navi navigation newsletter newsletters outbrain overlay pager pagination paginator popular popup
    postmeta print profile promo promotion published rail readmore recirc recommend recommendation
    recommendations recommended related replies respond share shares sharing sidebar signup skip slider
    slideshow social sponsor sponsored subscribe subscription swiper taboola taglist tags teaser timestamp toc
    toolbar trending upsell vote votes widget wishlist
""",
    )
)
_INTRODUCTIONS = frozenset(
    re.findall(
        r"\w+",
        """
    abstract chapo deck dek desc description excerpt intro introduction lead lede sapo standfirst subhead subheading
    subheadline subtitle summary
""",
    )
)
_NEVER = frozenset(("body", "caption", "figcaption", "a", *HEADINGS))
"""What its names say little of: a heading may be an anchor below a navbar."""
_ABOUT = re.compile(r"(?<![\w-])(?:has|is|with|without|no|not)-[\w-]+")
"""A name that says what an element has, and not what it is."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_LITTLE = 0.2
"""The share of the content that an element may have, and be none by its name."""
_BEFORE = 0.05
"""The same of what stands before the headline."""
_LIST = 0.4
"""The same of a list of other pages."""
_LABELS = re.compile(
    r"advert(?:isement)?s?|sponsored(?: links?| content)?|story continues below(?: advertisement)?|comments?|anzeige"
    r"|werbung|publicidad(?:e)?|publicité|pubblicità|iklan|реклама|広告|광고|广告",
    re.IGNORECASE,
)
"""What stands above what a script would have put there."""
_LONGEST_LABEL = 40
"""Characters of a line that says what the list below it is."""
_LABEL_ENDS = (":", "\uff1a", "...", "\u2026")


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
        if name in ("class", "id") and _named_around(element, value):
            return True
    return False


def introduces(element: HtmlElement) -> bool:
    """Whether an element is named as the sentence under a headline is."""
    return not _INTRODUCTIONS.isdisjoint(_words(element.get("class") or ""))


def _named_around(element: HtmlElement, names: str) -> bool:
    words = _words(names) & _NAMES
    # The contents of a book are no way through the page.
    return bool(words) and (words != {"toc"} or next(element.iter("a"), None) is not None)


@lru_cache(maxsize=8192)
def _words(names: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(_ABOUT.sub("", names)))


def trim(texts: Texts) -> None:
    """Take out of the content what is around it, lists of other pages, and paragraphs that only lead to one."""
    texts.count()
    total = texts.content(texts.spans[texts.root])
    _trim_within(texts, texts.root, total)
    _trim_before(texts, total)
    _trim_after(texts)


def _trim_before(texts: Texts, total: int) -> None:
    """Take out what little stands before the headline: the way there, a category, who wrote it."""
    for headline in texts.root.iter("h1"):
        start, end = texts.spans[headline]
        if any(texts.kept[start:end]):
            if texts.content((0, start)) < _BEFORE * total:
                texts.put((0, start), kept=False)
            return


def _trim_after(texts: Texts) -> None:
    """Take out the heading at the end of what is no content."""
    last = texts.kept.rfind(1)
    if last < 0 or (block := _block(texts, last)).tag not in HEADINGS[1:]:
        return
    if texts.within(block.itersiblings()):
        texts.put(texts.spans[block], kept=False)


def _trim_label(texts: Texts, end: int) -> None:
    """Take out the line that says what the list is which was taken out after it."""
    last = texts.kept.rfind(1, 0, end)
    if last < 0 or (block := _block(texts, last)).tag not in ("p", "div"):
        return
    said = texts.said(span := texts.spans[block]).strip()
    bold = texts.within(block.iter("b", "strong")) == texts.size(span)
    if len(said) <= _LONGEST_LABEL and (bold or said.endswith(_LABEL_ENDS)):
        texts.put(span, kept=False)


def _block(texts: Texts, number: int) -> HtmlElement:
    """The innermost block that a text stands in."""
    holder = texts.holder(number)
    return next((one for one in (holder, *holder.iterancestors()) if one.tag in BLOCKS), texts.root)


def _labels_nothing(texts: Texts, element: HtmlElement) -> bool:
    span = texts.spans[element]
    if element.tag not in ("p", "div", "center") or texts.size(span) > _LONGEST_LABEL:
        return False
    return _LABELS.fullmatch(texts.said(span).strip(" \n\t:")) is not None


def _trim_within(texts: Texts, element: HtmlElement, total: int) -> None:
    for child in element:
        span = texts.spans[child]
        content = texts.content(span)
        if not content or child.tag in ("pre", "code"):
            continue
        if content < _LITTLE * total and _stands_around(texts, child):
            texts.put(span, kept=False)
        elif content < _LIST * total and is_list_of_pages(texts, child):
            texts.put(span, kept=False)
            _trim_label(texts, span[0])
        else:
            _trim_within(texts, child, total)


def _stands_around(texts: Texts, element: HtmlElement) -> bool:
    return (
        is_around(element)
        or leads_away(texts, element)
        or is_list_of_tags(texts, element)
        or _labels_nothing(texts, element)
    )
