"""Reads the entries of an RSS or Atom feed."""

import json
import re
from html import unescape
from io import BytesIO
from itertools import islice
from typing import Any, NamedTuple

import feedparser

from servers.common.html.tree import parse
from servers.common.html.urls import absolute_url
from servers.common.html.visible import keep_visible
from servers.common.html.writer import write
from shared.text import format_count

from ..errors import FetchError
from .page import Metadata, Page, RemovedCounts, Source, describe
from .text import decode

MAX_ENTRIES = 1_000
MAX_SUMMARY = 5_000
"""Maximum number of characters in an entry's summary."""
_MAX_LINE = 1_000
"""Maximum number of characters in a title or another field of one line."""
_END_OF_ENTRY = re.compile(r"</(?:item|entry)\s*>")
_END_OF_FEED = re.compile(r"(?:</(?:channel|rss|feed|rdf:RDF)\s*>\s*)+\Z")
_HIDDEN = re.compile(r"<!--.*?(?:-->|\Z)|<(script|style)\b.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_PLAIN_TYPE = "text/plain"
"""The type of text without markup: `type="text"` in Atom, and a text in RSS that contains no markup."""
_BLOCK = re.compile(r"</?(?:p|div|h[1-6]|ul|ol|li|tr|table|blockquote|pre|br|hr)\b[^<>]*>", re.IGNORECASE)
_FENCE = re.compile(r"^(?:[ >*-]|\d+\.)*(`{3,})", re.MULTILINE)
"""The beginning or the end of code in Markdown, also in lists and quotes."""
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>|<![^<>]*>")
_SPACES = re.compile(r"[ \t\r\f\v\xa0]+")
_LINES = re.compile(r" ?\n ?(?:\n ?)+")


class _Entry(NamedTuple):
    title: str
    link: str
    published: str
    author: str
    summary: str
    media: tuple[str, ...] = ()
    """The URLs of the enclosures, such as the audio file of a podcast's episode."""


class _Summary(NamedTuple):
    text: str
    hidden: int = 0
    """The number of hidden elements in the summary."""
    is_partial: bool = False
    """True if the entry also has content that is longer."""


def read_feed(source: Source) -> Page:
    """Return the metadata and the entries of a feed. Raises FetchError with code `unreadable` if it is not a feed."""
    text, charset = decode(source.body, source.charset, source.kind.media_type)
    first = _keep_first_entries(text)
    # feedparser gets a stream of bytes, since it would treat a string as a URL or a file name.
    feed = feedparser.parse(
        BytesIO(first.encode("utf-8", "replace")),
        response_headers={"content-type": "application/xml; charset=utf-8", "content-location": source.url},
        sanitize_html=False,  # `_find_summary` removes the markup, so it can do no harm
        resolve_relative_uris=False,
    )
    if not feed.version and not feed.entries:
        raise FetchError("unreadable", "the feed is damaged", "It is served as RSS or Atom, but is neither.")
    metadata = Metadata(
        title=_find_title(feed.feed),
        description=_read_field(feed.feed, "subtitle")[:MAX_SUMMARY],
        language=_make_line(feed.feed.get("language")),
        author=_make_line(feed.feed.get("author")),
        canonical=_make_link(feed.feed.get("link"), source.url),
        published=_find_date(feed.feed),
    )
    summaries, entries = [], []
    for item in feed.entries:
        summary = _find_summary(item, source)
        media = (_make_link(enclosure.get("href"), source.url) for enclosure in item.get("enclosures", ()))
        title, author, link = (
            _find_title(item),
            _make_line(item.get("author")),
            _make_link(item.get("link"), source.url),
        )
        summaries.append(summary)
        entries.append(_Entry(title, link, _find_date(item), author, summary.text, tuple(filter(None, media))))
    notes = []
    if len(first) < len(text):
        notes.append(f"Only the first {len(entries)} entries are shown.")
    partial_count = sum(summary.is_partial for summary in summaries)
    if partial_count and source.format != "metadata":
        notes.append(
            f"{format_count(partial_count, 'entry', 'entries')} shown only in summary: `raw` has the whole text."
        )
    if feed.bozo and not isinstance(feed.bozo_exception, feedparser.CharacterEncodingOverride):
        notes.append("The feed is not well-formed, so something may be missing.")
    shown = _format_feed(source.format, metadata, entries, feed.version)
    removed = RemovedCounts(sum(summary.hidden for summary in summaries))
    return Page(shown, "feed", charset, metadata, removed=removed, notes=tuple(notes))


def _keep_first_entries(text: str) -> str:
    """Return a feed without excess entries, since feedparser takes a second for a few thousand."""
    ends = islice(_END_OF_ENTRY.finditer(text), MAX_ENTRIES - 1, MAX_ENTRIES + 1)
    last = next(ends, None)
    if last is None or next(ends, None) is None:
        return text
    end = _END_OF_FEED.search(text, max(last.end(), len(text) - 1_000))
    return text[: last.end()] + (end[0] if end else "")


def _format_feed(format: str, metadata: Metadata, entries: list[_Entry], version: str) -> str:
    if format == "metadata":
        properties = {name: value for name, value in metadata._asdict().items() if name != "site"}
        return describe(kind="feed", version=version, **properties, entries=len(entries))
    if format == "json":
        fields = [{key: value for key, value in entry._asdict().items() if value} for entry in entries]
        return json.dumps(fields, ensure_ascii=False, indent=2)
    if format == "links":
        return "\n".join(f"- [{entry.title or entry.link}]({entry.link})" for entry in entries if entry.link)
    marks = ("# ", "## ") if format == "markdown" else ("", "")
    head = [marks[0] + (metadata.title or "Feed"), metadata.canonical, metadata.description]
    parts = ["\n".join(filter(None, head[:2])), head[2]]
    for entry in entries:
        facts = " · ".join(filter(None, [entry.link, entry.published, entry.author, *entry.media]))
        heading = marks[1] + (entry.title or "Without a title")
        parts += [f"{heading}\n{facts}" if facts else heading, entry.summary]
    return "\n\n".join(filter(None, parts))


def _find_summary(entry: Any, source: Source) -> _Summary:
    """Return the summary of an entry, or its content if there is no text in the summary."""
    first, content = entry.get("summary_detail"), entry.get("content", ())
    hidden = 0
    for detail in filter(None, (first, *content[:1])):
        text, more = _read_detail(detail, _make_link(entry.get("link"), source.url) or source.url, source)
        hidden += more
        if text:
            is_longer = sum(len(str(part.get("value", ""))) for part in content) > len(str(detail.get("value", "")))
            return _Summary(_shorten(text), hidden, detail is first and is_longer)
    return _Summary("", hidden)


def _read_detail(detail: Any, link: str, source: Source) -> tuple[str, int]:
    """Return the text of a summary or content, and the number of its hidden elements."""
    markup = str(detail.get("value", ""))
    if detail.get("type") == _PLAIN_TYPE or not _TAG.search(markup):
        return _remove_markup(detail), 0
    root, _ = parse(markup)
    hidden = keep_visible(root).elements
    base = absolute_url(link, detail.get("base")) or link
    return write(root.find("body"), base, base, plain=source.format != "markdown"), hidden


def _shorten(text: str) -> str:
    """Return at most `MAX_SUMMARY` characters of text."""
    if len(text) <= MAX_SUMMARY:
        return text
    shown = text[:MAX_SUMMARY].rstrip()
    # If a code block is cut, add its end, since the text after the summary would become code.
    start = ""
    for fence in _FENCE.findall(shown):
        start = "" if fence == start else start or fence
    return f"{shown} …\n{start}" if start else f"{shown} …"


def _read_field(item: Any, name: str) -> str:
    """Return the text of a feed's or an entry's field, without markup."""
    return _remove_markup(item.get(f"{name}_detail") or {"value": item.get(name, "")})


def _remove_markup(detail: Any) -> str:
    """Return text without markup; in text that is declared as plain, tags and entities are literal."""
    text = str(detail.get("value", ""))
    return _squeeze(text) if detail.get("type") == _PLAIN_TYPE else plain_text(text)


def _find_title(item: Any) -> str:
    return " ".join(_read_field(item, "title").split())[:_MAX_LINE]


def _make_line(value: object) -> str:
    return " ".join(plain_text(str(value)).split())[:_MAX_LINE] if value else ""


def _make_link(value: object, url: str) -> str:
    """Return an absolute link that a reader may follow; "" for other links, such as those that contain a script."""
    link = absolute_url(url, str(value)) if value else ""
    return link if link.startswith("http") else ""


def _find_date(item: Any) -> str:
    """Return a date in ISO 8601 and UTC if it can be parsed, otherwise unchanged."""
    for name in ("published", "updated"):
        date, text = item.get(f"{name}_parsed"), item.get(name)
        if date:
            return f"{date[0]:04}-{date[1]:02}-{date[2]:02}T{date[3]:02}:{date[4]:02}:{date[5]:02}Z"
        if text:
            return _make_line(text)[:100]
    return ""


def plain_text(markup: str) -> str:
    """Return the text of a piece of HTML, in lines if it has blocks. Text without markup is returned unchanged."""
    text = _HIDDEN.sub("", markup)
    text = _TAG.sub("", _BLOCK.sub("\n", text))
    return _squeeze(unescape(text))


def _squeeze(text: str) -> str:
    return _LINES.sub("\n\n", _SPACES.sub(" ", text)).strip()
