"""Resolves the URLs of a page's links and pictures.

Characters with a meaning in Markdown are encoded. Only http, https, mailto and tel URLs are linked.
"""

import re
from urllib.parse import urljoin, urlsplit

from lxml.html import HtmlElement

from .invisible import strip_invisible

_MAX_URL = 2_000
"""Maximum number of characters of a URL; a longer one is not linked."""
_SCHEMES = frozenset(("http", "https", "mailto", "tel"))
_STRIPPED_FROM_URLS = "".join(map(chr, range(0x21)))
_BREAKS_IN_URLS = re.compile(r"[\t\r\n]")
_UNSAFE_IN_URLS = re.compile(r"[()<>\[\]\\`\"|*\s]")
_LAZY_ATTRIBUTES = ("data-src", "data-original", "data-lazy-src", "data-lazy", "data-actualsrc")
"""The attributes from which scripts load a picture. A value without a dot or slash is a flag, and one with braces a
pattern."""


def base_url(root: HtmlElement, url: str) -> str:
    """Return the URL to which links in the page at `url` are relative (WHATWG HTML, section 4.2.3)."""
    declared = next((element.get("href") for element in root.iter("base") if element.get("href")), None)
    return absolute_url(url, strip_invisible(declared or "")[0]) or url


def absolute_url(base: str, link: str | None) -> str:
    """Return the absolute URL of a link, encoded for Markdown; "" if it is too long, or its scheme is not one of
    `_SCHEMES`."""
    cleaned = _BREAKS_IN_URLS.sub("", (link or "").strip(_STRIPPED_FROM_URLS))
    if not cleaned:
        return ""
    try:
        url = urljoin(base, cleaned)
        scheme = urlsplit(url).scheme
    except ValueError:
        return ""
    if scheme not in _SCHEMES or len(url) > _MAX_URL:
        return ""
    return _UNSAFE_IN_URLS.sub(lambda unsafe: "".join(f"%{byte:02X}" for byte in unsafe[0].encode()), url)


def picture_url(base: str, image: HtmlElement) -> str:
    """Return the URL of a picture: from the attributes from which scripts load it, since `src` may only have a
    placeholder then; otherwise from `src` or its `picture` element; "" if there is none."""
    parent = image.getparent()
    elements = [image, *(parent.iter("source") if parent is not None and parent.tag == "picture" else ())]
    lazy = [image.get(name) or "" for name in _LAZY_ATTRIBUTES]
    lazy += [_first_of(element.get("data-srcset")) for element in elements]
    sources = [source for source in lazy if "{" not in source and not {".", "/"}.isdisjoint(source)]
    sources += [image.get("src"), *(_first_of(element.get("srcset")) for element in elements)]
    for source in sources:
        if url := absolute_url(base, source):
            return url
    return ""


def _first_of(source_set: str | None) -> str:
    """Return the first URL of a `srcset`."""
    return next((part.rstrip(",") for part in (source_set or "").split()), "")
