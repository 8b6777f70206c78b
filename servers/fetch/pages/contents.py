"""What a page says of its own contents: its headings and its links, found in its Markdown.

That is of our own making, so a heading is a line with signs before it, and what stands in a page can't look like one.
"""

import re
from collections.abc import Iterator
from typing import Any

from servers.common.documents.kinds import DOCUMENTS
from servers.fetch.pages.snapshots import Snapshot, Wanted
from servers.fetch.pages.texts import Piece

_WITH_CONTENTS = ("html", "feed", "markdown", "pdf", *DOCUMENTS)
"""The kinds of pages whose text has headings and links."""
_TEXT = 400_000
"""Characters that are looked at."""
_HEADINGS, _LINKS = 300, 500
_TITLE, _WORDS = 500, 200
"""Characters of a title, and of a heading or of the words of a link, that are told."""
_URL = 2_000
"""Characters of a URL; a link that has more is left out."""
_BYTES = 40_000
"""Bytes of all headings, and of all links, as UTF-8."""

_HEADING = re.compile(r"^(?:(?P<fence>`{3,}|~{3,})|(?P<signs>#{1,6}) (?P<words>.*))", re.MULTILINE)
# What is between the signs has none of those that begin another link: else a line of them takes long to look through.
_TO = r"""\]\((?P<url>[^()\[\]\s]+)(?: "[^"\[\n]*")?\)"""
_LINK = re.compile(r"\[(?P<words>(?:[^\[\]\\\n]|\\.)*)" + _TO)
_IMAGE = re.compile(r"!\[(?P<words>(?:[^\[\]\\\n]|\\.)*)" + _TO)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_SIGNS = re.compile(r"(?<!\\)[*`]+|(?<![\\\w])_+|_+(?!\w)")


def view_of(wanted: Wanted, snapshot: Snapshot, piece: Piece) -> dict[str, Any]:
    """What is shown of a page beside a piece of its text."""
    page, url = snapshot.page, snapshot.loaded.url
    view: dict[str, Any] = {"url": url}
    if page.found.title:
        view["title"] = page.found.title[:_TITLE]
    if wanted.format == "markdown" and page.kind in _WITH_CONTENTS:
        view["links"] = list_links(page.text)
        if len(piece.text) < piece.total:
            # Of a text that is whole the reader finds them by itself.
            view["outline"] = list_headings(page.text)
        if wanted.section is None and wanted.pages is None:
            # As a resource a page is its main content, as Markdown.
            view["resource"] = url
    return view


def list_headings(markdown: str) -> list[dict[str, Any]]:
    """The headings of a page in their order, each with its level."""
    return _within(_headings(markdown[:_TEXT]), _HEADINGS)


def list_links(markdown: str) -> list[dict[str, Any]]:
    """The links of a page in their order, each URL once."""
    return _within(_links(markdown[:_TEXT]), _LINKS)


def _headings(markdown: str) -> Iterator[dict[str, Any]]:
    fence = ""
    for found in _HEADING.finditer(markdown):
        if sign := found["fence"]:
            # A block of code ends with as many signs as it began with, or more.
            fence = "" if fence and sign.startswith(fence) else fence or sign
        elif not fence:
            yield {"level": len(found["signs"]), "text": _plain(found["words"])}


def _links(markdown: str) -> Iterator[dict[str, Any]]:
    known: set[str] = set()
    for found in _LINK.finditer(_IMAGE.sub(r"\g<words>", markdown)):
        url = found["url"]
        if url not in known and len(url) <= _URL and url.startswith(("http://", "https://")):
            known.add(url)
            yield {"text": _plain(found["words"]), "url": url}


def _plain(words: str) -> str:
    """Words without what marks them as links, emphasised, or code."""
    words = _LINK.sub(r"\g<words>", _IMAGE.sub(r"\g<words>", words[: _URL + _WORDS]))
    return _ESCAPED.sub(r"\1", _SIGNS.sub("", words)).strip()[:_WORDS]


def _within(entries: Iterator[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """The first entries, as many as there may be."""
    taken: list[dict[str, Any]] = []
    left = _BYTES
    for one in entries:
        left -= sum(len(str(value).encode("utf-8", "replace")) + 20 for value in one.values())
        if len(taken) == most or left < 0:
            break
        taken.append(one)
    return taken
