"""The metadata of a page, from its head and from JSON blocks such as JSON-LD."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from lxml.html import HtmlElement

from servers.common.html.invisible import strip_invisible
from servers.common.html.tree import HEADINGS, squeeze
from servers.common.html.urls import absolute_url

from ..page import Metadata

_MAX_FIELD = 1_000
"""Maximum number of characters of one field."""
_MAX_PROPERTIES = 50
"""Maximum number of Open Graph properties."""
_MAX_FEEDS = 20
_MAX_HEADINGS = 200
_FEED_TYPES = ("application/rss+xml", "application/atom+xml", "application/feed+json")
_JSON_TYPE = re.compile(r"\s*application/(?:json|(?:[\w.-]+\+)?json)\s*(?:;.*)?", re.IGNORECASE)
_JSON_WRAPPER = re.compile(r"^\s*(?:<!--|//\s*<!\[CDATA\[|<!\[CDATA\[)|(?:-->|//\s*\]\]>|\]\]>)\s*$")
_MAX_BLOCK = 1_000_000
"""Maximum number of characters in a JSON-LD block that is searched for metadata."""
_MAX_NODES = 1_000
"""Maximum number of JSON-LD objects of a page."""


class Facts(NamedTuple):
    """The metadata of a page."""

    metadata: Metadata
    modified: str
    open_graph: dict[str, str]
    feeds: list[dict[str, str]]
    heading: str
    """The heading of the page that its title contains; if there is none, the title."""


def read_facts(root: HtmlElement, base: str, things: list[dict[str, Any]]) -> Facts:
    """Return the metadata of a page, from its head and its JSON-LD."""
    metas = _read_metas(root)
    title = _clean(
        next((squeeze(element.text_content()) for element in root.iter("title") if squeeze(element.text)), "")
    )
    headings = [squeeze(element.text_content()) for element in root.iter("h1")]
    declared = Metadata(
        title=title or _find_first(metas, "og:title", "twitter:title") or _clean(next(filter(None, headings), "")),
        description=_find_first(metas, "description", "og:description", "twitter:description"),
        language=_clean(root.get("lang") or root.get("xml:lang"))
        or _find_first(metas, "content-language", "og:locale"),
        author=_find_first(metas, "author", "article:author", "dc.creator", "parsely-author")
        or _find_in_things(things, "author"),
        canonical=next((absolute_url(base, link.get("href")) for link in _find_links(root, "canonical")), ""),
        published=_find_first(
            metas, "article:published_time", "datepublished", "date", "dc.date", "dc.date.issued", "pubdate"
        )
        or _find_in_things(things, "datePublished")
        or _find_publication_time(root),
        site=_find_first(metas, "og:site_name", "application-name"),
    )
    modified = _find_first(metas, "article:modified_time", "datemodified", "last-modified") or _find_in_things(
        things, "dateModified"
    )
    graph = {name: value for name, value in metas.items() if name.startswith("og:")}
    feeds = [
        {"title": _clean(link.get("title")), "type": kind, "url": url}
        for link in _find_links(root, "alternate")
        if (kind := (link.get("type") or "").strip().lower()) in _FEED_TYPES
        and (url := absolute_url(base, link.get("href")))
    ]
    # The Open Graph title is often shorter than the title, since it lacks the name of the site.
    graph_title = graph.get("og:title", "")
    whole = f"{declared.title} {graph_title}".casefold()
    heading = next(
        (words for words in headings if words and words.casefold() in whole), graph_title or declared.title
    )
    first = dict(list(graph.items())[:_MAX_PROPERTIES])
    return Facts(declared, modified, first, feeds[:_MAX_FEEDS], heading)


def format_metadata(facts: Facts, url: str, parts: Iterable[HtmlElement]) -> str:
    """Return the metadata as JSON, and the headings of the page's parts with the ids that `section` accepts."""
    headings: list[dict[str, Any]] = []
    for heading in (heading for part in parts for heading in part.iter(*HEADINGS)):
        text = squeeze(heading.text_content())
        if text:
            # The id of the heading, of an anchor in it, or of its parent.
            candidates = (heading, *heading.iterdescendants("a", "span"), heading.getparent())
            name = next((element.get("id") for element in candidates if element.get("id")), None)
            headings.append(
                {"level": int(heading.tag[1]), "text": text[:_MAX_FIELD], **({"id": name} if name else {})}
            )
    fields = {"url": url, **facts.metadata._asdict(), "modified": facts.modified}
    all_fields: dict[str, Any] = {name: value for name, value in fields.items() if value}
    all_fields |= {"open_graph": facts.open_graph, "feeds": facts.feeds, "headings": headings[:_MAX_HEADINGS]}
    return json.dumps(all_fields, ensure_ascii=False, indent=2)


def _read_metas(root: HtmlElement) -> dict[str, str]:
    """Return the first value of each name, with lowercase names."""
    metas: dict[str, str] = {}
    for meta in root.iter("meta"):
        name = meta.get("property") or meta.get("name") or meta.get("itemprop") or meta.get("http-equiv")
        value = _clean(meta.get("content"))
        if name and value:
            metas.setdefault(name.strip().lower()[:100], value)
    return metas


def _find_first(metas: dict[str, str], *names: str) -> str:
    """Return the first value with one of these names that is not a URL: some sites give the URL of a page as the
    author."""
    return next(
        (metas[name] for name in names if name in metas and not metas[name].startswith(("http:", "https:"))), ""
    )


def _clean(text: object) -> str:
    return squeeze(strip_invisible(text)[0])[:_MAX_FIELD] if isinstance(text, str) else ""


def _find_in_things(things: list[dict[str, Any]], name: str) -> str:
    return next((text for thing in things if (text := _read_name(thing.get(name)))), "")


def _read_name(value: Any) -> str:
    """Return the text of a value: a string, the name of a thing, or several of these."""
    if isinstance(value, list):
        return ", ".join(filter(None, (_read_name(item) for item in value[:10] if not isinstance(item, list))))
    return _clean(value.get("name") if isinstance(value, dict) else value)


def _find_links(root: HtmlElement, relation: str) -> list[HtmlElement]:
    return [link for link in root.iter("link") if relation in (link.get("rel") or "").lower().split()]


def _find_publication_time(root: HtmlElement) -> str:
    marked = (
        element
        for element in root.iter("time")
        if element.get("itemprop") == "datePublished" or element.get("pubdate") is not None
    )
    return next((_clean(element.get("datetime")) for element in marked if element.get("datetime")), "")


# JSON blocks in data scripts


def read_blocks(elements: Iterable[HtmlElement]) -> tuple[list[dict[str, Any]], int]:
    """Return the JSON blocks in elements, each with its type and id, and the number of unreadable ones."""
    blocks: list[dict[str, Any]] = []
    failed = 0
    for script in (script for element in elements for script in element.iter("script")):
        kind = script.get("type") or ""
        if not _JSON_TYPE.fullmatch(kind):
            continue
        data, read = _parse(script.text or "")
        failed += not read
        if read:
            named = {"id": script.get("id")} if script.get("id") else {}
            blocks.append({"type": kind.strip().lower(), **named, "data": data})
    return blocks, failed


def read_linked_data(root: HtmlElement) -> list[dict[str, Any]]:
    """Return the things that the JSON-LD of a page describes, outer before inner ones, at most a thousand."""
    things: list[dict[str, Any]] = []
    for script in root.iter("script"):
        if (script.get("type") or "").strip().lower() == "application/ld+json" and len(
            script.text or ""
        ) < _MAX_BLOCK:
            data, _ = _parse(script.text or "")
            things += _find_things(data, _MAX_NODES - len(things))
    return things


def _parse(text: str) -> tuple[Any, bool]:
    try:
        return json.loads(_JSON_WRAPPER.sub("", text), strict=False, parse_constant=str), True
    except (ValueError, RecursionError):
        return None, False


def _find_things(data: Any, limit: int) -> Iterator[dict[str, Any]]:
    """Yield the objects of JSON-LD: at the top level, in a graph, and the main entities of the page."""
    waiting = [data]
    for node in waiting:
        if limit <= 0:
            return
        if isinstance(node, list):
            waiting += node[:_MAX_NODES]
        elif isinstance(node, dict):
            limit -= 1
            yield node
            waiting += [node[name] for name in ("@graph", "mainEntity", "mainEntityOfPage") if name in node]
