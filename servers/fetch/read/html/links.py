"""Lists the links of a page, and cleans its markup for the format `html`."""

from collections.abc import Iterable
from urllib.parse import urldefrag

from lxml.html import HtmlElement, tostring

from servers.common.html.inline import escape_label
from servers.common.html.markup.embedded import EMBEDDED, make_link
from servers.common.html.tree import names_in, squeeze
from servers.common.html.urls import absolute_url, picture_url

_MAX_LINKS = 1_000
"""Maximum number of links that are listed."""
_MAX_LINK_TEXT = 200
"""Maximum number of characters in a link's text."""
_KEPT_ATTRIBUTES = names_in("""
    id class href src alt title lang dir colspan rowspan headers scope start value reversed datetime cite name type
    checked open role aria-label itemprop
""")
_REMOVED_TAGS = ("link", "meta", "base", "iframe", "frame")


def list_links(parts: Iterable[HtmlElement], base: str, page: str) -> tuple[str, int]:
    """Return one line for each linked URL, with the text of its first link, and the number of further URLs.

    Links within the page are left out.
    """
    page_url = urldefrag(page).url
    words: dict[str, str] = {}
    for link in (link for part in parts for link in part.iter("a", "area", "img")):
        url = absolute_url(base, link.get(EMBEDDED if link.tag == "img" else "href"))
        if url and urldefrag(url).url != page_url and not words.get(url):
            pictures = " ".join(image.get("alt") or "" for image in link.iter("img"))
            names = (link.text_content(), link.get("aria-label"), link.get("alt"), link.get("title"), pictures)
            text = next(filter(None, map(squeeze, names)), "")
            words[url] = escape_label(text[:_MAX_LINK_TEXT])
    lines = [f"- [{text or url}]({url})" for url, text in list(words.items())[:_MAX_LINKS]]
    return "\n".join(lines), max(len(words) - _MAX_LINKS, 0)


def clean_markup(part: HtmlElement, base: str) -> str:
    """Return the HTML of a visible part with absolute links, and with only the tags and attributes that matter to a
    reader. The tree is changed."""
    for element in list(part.iter()):
        if element.get(EMBEDDED):
            make_link(element)
        if element.tag in _REMOVED_TAGS and element is not part:
            element.drop_tree()
            continue
        for name in list(element.attrib):
            if name not in _KEPT_ATTRIBUTES:
                del element.attrib[name]
        if element.get("src") is not None or element.tag == "img":
            _set_url(element, "src", picture_url(base, element))
        if element.get("href") is not None:
            _set_url(element, "href", absolute_url(base, element.get("href")))
    return str(tostring(part, encoding="unicode", with_tail=False)).strip()


def _set_url(element: HtmlElement, name: str, url: str) -> None:
    if url:
        element.set(name, url)
    elif name in element.attrib:
        del element.attrib[name]
