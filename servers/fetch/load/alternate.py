"""Finds the Markdown version that a page links to in its `Link` header (RFC 8288) or in its head."""

import re
from html.parser import HTMLParser
from urllib.parse import urljoin

from ..errors import FetchError
from ..network.urls import host_of, parse_url, port_of
from ..read.page import LoadedPage

_SEARCHED_BYTES = 65_536
"""Number of bytes of a page that are searched for links to a Markdown version."""
_MARKDOWN_TYPE = "text/markdown"
_LINK = re.compile(r"""<([^<>]*)>((?:\s*;\s*[\w!#$&+.^`|~*-]+\s*=\s*(?:"[^"]*"|[^\s",;]*))*)""")
_PARAMETER = re.compile(r""";\s*([\w!#$&+.^`|~*-]+)\s*=\s*(?:"([^"]*)"|([^\s",;]*))""")


def find_alternate(loaded: LoadedPage) -> str | None:
    """Return the URL of the first Markdown alternate on the page's own origin, or None."""
    targets: list[str] = []
    for target, parameters in _LINK.findall(loaded.headers.get("link", "")):
        attributes: dict[str, str] = {}
        for name, quoted, token in _PARAMETER.findall(parameters):
            attributes.setdefault(name.lower(), quoted or token)
        if _is_alternate(attributes):
            targets.append(target.strip())
    start = loaded.body[:_SEARCHED_BYTES]
    if _MARKDOWN_TYPE.encode() in start.lower():
        head = _HeadParser()
        head.feed(start.decode("utf-8", "replace"))
        targets += [urljoin(head.base, target) for target in head.targets]
    for target in targets:
        try:
            url = str(parse_url(urljoin(loaded.url, target)).copy_with(fragment=None))
        except (ValueError, FetchError):
            continue
        if url != loaded.url and is_same_origin(url, loaded.url):
            return url
    return None


def is_same_origin(first: str, second: str) -> bool:
    """Return True if two fetched URLs have the same scheme, host and port."""
    first_url, second_url = parse_url(first), parse_url(second)
    return (first_url.scheme, host_of(first_url), port_of(first_url)) == (
        second_url.scheme,
        host_of(second_url),
        port_of(second_url),
    )


class _HeadParser(HTMLParser):
    """Parser that collects the alternates of a page up to its body."""

    def __init__(self) -> None:
        super().__init__()
        self.base = ""
        self.targets: list[str] = []
        self._has_ended = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in reversed(attrs)}
        if tag == "body":
            self._has_ended = True
        elif tag == "base" and not self.base:
            self.base = attributes.get("href", "").strip()
        elif tag == "link" and not self._has_ended and _is_alternate(attributes):
            self.targets.append(attributes.get("href", "").strip())


def _is_alternate(attributes: dict[str, str]) -> bool:
    relations = attributes.get("rel", "").lower().split()
    return "alternate" in relations and attributes.get("type", "").partition(";")[0].strip().lower() == _MARKDOWN_TYPE
