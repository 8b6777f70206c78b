"""What stands around the content of a page, by its tag, its role, or the names that programs give it.

Names are compared by their words: trafilatura compares parts of them, and so takes a `barcode` for a bar.
"""

import re
from functools import lru_cache

from lxml.html import HtmlElement

from servers.fetch.reading.html.tree import HEADINGS

__all__ = ["introduces", "is_around"]

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
