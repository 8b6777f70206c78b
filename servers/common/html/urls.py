"""Where the links and pictures of a page lead.

Characters that Markdown would read as markup are encoded. Nothing but http, https, mailto and tel is linked.
"""

import re
from urllib.parse import urljoin, urlsplit

from lxml.html import HtmlElement

from servers.common.html.invisible import strip_invisible

_LONGEST_URL = 2_000
_SCHEMES = frozenset(("http", "https", "mailto", "tel"))
_AROUND_URLS = "".join(map(chr, range(0x21)))
_BREAKS_IN_URLS = re.compile(r"[\t\r\n]")
_UNSAFE_IN_URLS = re.compile(r"[()<>\[\]\\`\"|*\s]")


def base_url(root: HtmlElement, url: str) -> str:
    """What the links of the page at `url` are relative to (WHATWG HTML, section 4.2.3)."""
    declared = next((one.get("href") for one in root.iter("base") if one.get("href")), None)
    return absolute_url(url, strip_invisible(declared or "")[0]) or url


def absolute_url(base: str, link: str | None) -> str:
    """A link as a URL that may stand in Markdown; empty where it leads nowhere that could be fetched or written."""
    wanted = _BREAKS_IN_URLS.sub("", (link or "").strip(_AROUND_URLS))
    if not wanted:
        return ""
    try:
        url = urljoin(base, wanted)
        scheme = urlsplit(url).scheme
    except ValueError:
        return ""
    if scheme not in _SCHEMES or len(url) > _LONGEST_URL:
        return ""
    return _UNSAFE_IN_URLS.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), url)


def picture_url(base: str, image: HtmlElement) -> str:
    """Where a picture is, also where a script would put it in its place."""
    sources = [image.get(name) for name in ("src", "data-src", "data-original", "data-lazy-src")]
    srcset = image.get("srcset") or image.get("data-srcset")
    sources.append(srcset.split()[0].rstrip(",") if srcset and srcset.strip() else None)
    for source in sources:
        if url := absolute_url(base, source):
            return url
    return ""
