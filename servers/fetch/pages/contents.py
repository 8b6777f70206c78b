"""Lists the headings and links of a page, taken from its Markdown.

This server has written the Markdown and escaped number signs in the page's text, so every line outside code that
begins with number signs is a heading.
"""

import re
from collections.abc import Iterator
from typing import Any

from servers.common.documents.kinds import DOCUMENTS

from .snapshots import PageRequest, Snapshot
from .texts import Piece

_WITH_CONTENTS = ("html", "feed", "markdown", "pdf", *DOCUMENTS)
"""The kinds of pages whose text has headings and links."""
_MAX_SEARCHED = 400_000
"""Maximum number of characters that are searched."""
_MAX_HEADINGS, _MAX_LINKS = 300, 500
"""Maximum numbers of headings and of links that are listed."""
_MAX_TITLE, _MAX_TEXT = 500, 200
"""Maximum number of characters in a title, a heading or a link's text."""
_MAX_URL = 2_000
"""Maximum number of characters in a URL; longer links are left out."""
_MAX_BYTES = 40_000
"""Maximum size of all headings, and of all links, in bytes of UTF-8."""

_HEADING = re.compile(r"^(?:(?P<fence>`{3,}|~{3,})|(?P<signs>#{1,6}) (?P<words>.*))", re.MULTILINE)
# The text of a link must not contain an unescaped bracket: otherwise a line of brackets would take long to search.
_LINK_TARGET = r"""\]\((?P<url>[^()\[\]\s]+)(?: "[^"\[\n]*")?\)"""
_LINK = re.compile(r"\[(?P<words>(?:[^\[\]\\\n]|\\.)*)" + _LINK_TARGET)
_IMAGE = re.compile(r"!\[(?P<words>(?:[^\[\]\\\n]|\\.)*)" + _LINK_TARGET)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_EMPHASIS_SIGNS = re.compile(r"(?<!\\)[*`]+|(?<![\\\w])_+|_+(?!\w)")


def view_of(request: PageRequest, snapshot: Snapshot, piece: Piece) -> dict[str, Any]:
    """Return the data that the app page gets with a piece of a page's text."""
    page, url = snapshot.page, snapshot.loaded.url
    view: dict[str, Any] = {"url": url}
    if page.metadata.title:
        view["title"] = page.metadata.title[:_MAX_TITLE]
    if request.format == "markdown" and page.kind in _WITH_CONTENTS:
        view["links"] = list_links(page.text)
        if len(piece.text) < piece.total:
            # If the text is complete, the app page finds the headings itself.
            view["outline"] = list_headings(page.text)
        if request.section is None and request.pages is None:
            # A page's resource is its main content as Markdown.
            view["resource"] = url
    return view


def list_headings(markdown: str) -> list[dict[str, Any]]:
    """Return the headings of a page in order, each with its level."""
    return _limit(_find_headings(markdown[:_MAX_SEARCHED]), _MAX_HEADINGS)


def list_links(markdown: str) -> list[dict[str, Any]]:
    """Return the links of a page in order, each URL once."""
    return _limit(_find_links(markdown[:_MAX_SEARCHED]), _MAX_LINKS)


def _find_headings(markdown: str) -> Iterator[dict[str, Any]]:
    fence = ""
    for match in _HEADING.finditer(markdown):
        if sign := match["fence"]:
            # A fenced code block ends with at least as many fence characters as it began with.
            fence = "" if fence and sign.startswith(fence) else fence or sign
        elif not fence:
            yield {"level": len(match["signs"]), "text": _remove_markup(match["words"])}


def _find_links(markdown: str) -> Iterator[dict[str, Any]]:
    seen: set[str] = set()
    for match in _LINK.finditer(_IMAGE.sub(r"\g<words>", markdown)):
        url = match["url"]
        if url not in seen and len(url) <= _MAX_URL and url.startswith(("http://", "https://")):
            seen.add(url)
            yield {"text": _remove_markup(match["words"]), "url": url}


def _remove_markup(words: str) -> str:
    """Return text without the Markdown for links, emphasis, or code."""
    words = _LINK.sub(r"\g<words>", _IMAGE.sub(r"\g<words>", words[: _MAX_URL + _MAX_TEXT]))
    return _ESCAPED.sub(r"\1", _EMPHASIS_SIGNS.sub("", words)).strip()[:_MAX_TEXT]


def _limit(entries: Iterator[dict[str, Any]], limit: int) -> list[dict[str, Any]]:
    """Return as many of the first entries as the limits allow."""
    chosen: list[dict[str, Any]] = []
    remaining = _MAX_BYTES
    for entry in entries:
        remaining -= sum(len(str(value).encode("utf-8", "replace")) + 20 for value in entry.values())
        if len(chosen) == limit or remaining < 0:
            break
        chosen.append(entry)
    return chosen
