"""What a page says of itself to programs: in its head, and in blocks of JSON such as JSON-LD."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from urllib.parse import urldefrag

from lxml.html import HtmlElement

from servers.common.html.invisible import strip_invisible
from servers.common.html.tree import HEADINGS, squeeze
from servers.common.html.urls import absolute_url
from servers.fetch.read.page import Found

_LONGEST = 1_000
"""Characters of one fact."""
_MOST_PROPERTIES = 50
_MOST_FEEDS = 20
_MOST_HEADINGS = 200
_FEEDS = ("application/rss+xml", "application/atom+xml", "application/feed+json")
_KINDS = re.compile(r"\s*application/(?:json|(?:[\w.-]+\+)?json)\s*(?:;.*)?", re.IGNORECASE)
_URL_BEFORE = re.compile(r"^\s*url\s*=\s*", re.IGNORECASE)
_AROUND = re.compile(r"^\s*(?:<!--|//\s*<!\[CDATA\[|<!\[CDATA\[)|(?:-->|//\s*\]\]>|\]\]>)\s*$")
_LONGEST_BLOCK = 1_000_000
"""Characters of one block of JSON-LD that is looked into for what a page says of itself."""
_MOST_NODES = 1_000


class Facts(NamedTuple):
    """What a page says of itself."""

    found: Found
    modified: str
    open_graph: dict[str, str]
    feeds: list[dict[str, str]]
    heading: str
    """What the page is headed with, where it differs from its title in nothing but the name of the site."""


def facts_of(root: HtmlElement, base: str, things: list[dict[str, Any]]) -> Facts:
    """The facts of a page, by its head and by the things that its JSON-LD describes."""
    said = _metas(root)
    title = _fact(next((squeeze(one.text_content()) for one in root.iter("title") if squeeze(one.text)), ""))
    headings = [squeeze(one.text_content()) for one in root.iter("h1")]
    found = Found(
        title=title or _first(said, "og:title", "twitter:title") or _fact(next(filter(None, headings), "")),
        description=_first(said, "description", "og:description", "twitter:description"),
        language=_fact(root.get("lang") or root.get("xml:lang")) or _first(said, "content-language", "og:locale"),
        author=_first(said, "author", "article:author", "dc.creator", "parsely-author")
        or _of_things(things, "author"),
        canonical=next((absolute_url(base, link.get("href")) for link in _links(root, "canonical")), ""),
        published=_first(
            said, "article:published_time", "datepublished", "date", "dc.date", "dc.date.issued", "pubdate"
        )
        or _of_things(things, "datePublished")
        or _time(root, "datePublished"),
        site=_first(said, "og:site_name", "application-name"),
    )
    modified = _first(said, "article:modified_time", "datemodified", "last-modified") or _of_things(
        things, "dateModified"
    )
    graph = {name: value for name, value in said.items() if name.startswith("og:")}
    feeds = [
        {"title": _fact(link.get("title")), "type": kind, "url": url}
        for link in _links(root, "alternate")
        if (kind := (link.get("type") or "").strip().lower()) in _FEEDS
        and (url := absolute_url(base, link.get("href")))
    ]
    first = dict(list(graph.items())[:_MOST_PROPERTIES])
    return Facts(
        found, modified, first, feeds[:_MOST_FEEDS], _heading(headings, found.title, graph.get("og:title", ""))
    )


def metadata(facts: Facts, url: str, parts: Iterable[HtmlElement]) -> str:
    """The facts as JSON, and the headings of parts of the page with the ids that `section` takes."""
    headings = [
        {"level": int(heading.tag[1]), "text": words[:_LONGEST], **_id(heading)}
        for part in parts
        for heading in part.iter(*HEADINGS)
        if (words := squeeze(heading.text_content()))
    ]
    said = {"url": url, **facts.found._asdict(), "modified": facts.modified}
    every: dict[str, Any] = {name: value for name, value in said.items() if value}
    every |= {"open_graph": facts.open_graph, "feeds": facts.feeds, "headings": headings[:_MOST_HEADINGS]}
    return json.dumps(every, ensure_ascii=False, indent=2)


def refresh_note(root: HtmlElement, base: str, url: str) -> list[str]:
    """A sentence about the page that a browser would be sent on to after a while; none where there is none."""
    for meta in root.iter("meta"):
        if (meta.get("http-equiv") or "").strip().lower() == "refresh":
            delay, _, rest = (meta.get("content") or "").replace(",", ";", 1).partition(";")
            target = absolute_url(base, _URL_BEFORE.sub("", rest).strip(" \t\n'\""))
            if target and urldefrag(target).url != urldefrag(url).url and delay.strip().isdecimal():
                return [f'A browser would go on from here to "{target[:_LONGEST]}" after {int(delay[:9])} s.']
    return []


def _metas(root: HtmlElement) -> dict[str, str]:
    """The first value of each name, names in lower case."""
    said: dict[str, str] = {}
    for meta in root.iter("meta"):
        name = meta.get("property") or meta.get("name") or meta.get("itemprop") or meta.get("http-equiv")
        value = _fact(meta.get("content"))
        if name and value:
            said.setdefault(name.strip().lower()[:100], value)
    return said


def _first(said: dict[str, str], *names: str) -> str:
    """The first that is said and is no address: some sites name their authors by their pages."""
    return next((said[name] for name in names if name in said and not said[name].startswith(("http:", "https:"))), "")


def _fact(text: object) -> str:
    return squeeze(strip_invisible(text)[0])[:_LONGEST] if isinstance(text, str) else ""


def _of_things(things: list[dict[str, Any]], name: str) -> str:
    return next((text for thing in things if (text := _named(thing.get(name)))), "")


def _named(value: Any) -> str:
    """A text, the name of a thing, or those of several."""
    if isinstance(value, list):
        return ", ".join(filter(None, (_named(one) for one in value[:10] if not isinstance(one, list))))
    return _fact(value.get("name") if isinstance(value, dict) else value)


def _links(root: HtmlElement, relation: str) -> list[HtmlElement]:
    return [link for link in root.iter("link") if relation in (link.get("rel") or "").lower().split()]


def _time(root: HtmlElement, name: str) -> str:
    marked = (one for one in root.iter("time") if one.get("itemprop") == name or one.get("pubdate") is not None)
    return next((_fact(one.get("datetime")) for one in marked if one.get("datetime")), "")


def _heading(headings: list[str], title: str, graph_title: str) -> str:
    """The heading that is in the title; else the title, which a page gives others in a shorter form."""
    whole = f"{title} {graph_title}".casefold()
    return next((words for words in headings if words and words.casefold() in whole), graph_title or title)


def _id(heading: HtmlElement) -> dict[str, str]:
    """The id of a heading, of an anchor in it, or of what holds it."""
    near = (heading, *heading.iterdescendants("a", "span"), heading.getparent())
    named = next((one.get("id") for one in near if one.get("id")), None)
    return {"id": named} if named else {}


# Blocks of JSON, in scripts that are data


def blocks_of(elements: Iterable[HtmlElement]) -> tuple[list[dict[str, Any]], int]:
    """The blocks of JSON within elements, each with its type and id, and how many more could not be read."""
    blocks: list[dict[str, Any]] = []
    failed = 0
    for script in (script for element in elements for script in element.iter("script")):
        kind = script.get("type") or ""
        if not _KINDS.fullmatch(kind):
            continue
        data, read = _parsed(script.text or "")
        failed += not read
        if read:
            named = {"id": script.get("id")} if script.get("id") else {}
            blocks.append({"type": kind.strip().lower(), **named, "data": data})
    return blocks, failed


def linked_data(root: HtmlElement) -> list[dict[str, Any]]:
    """The things that the JSON-LD of a page describes, outer before inner ones; at most a thousand."""
    things: list[dict[str, Any]] = []
    for script in root.iter("script"):
        if (script.get("type") or "").strip().lower() == "application/ld+json" and len(
            script.text or ""
        ) < _LONGEST_BLOCK:
            data, _ = _parsed(script.text or "")
            things += _things(data, _MOST_NODES - len(things))
    return things


def _parsed(text: str) -> tuple[Any, bool]:
    try:
        return json.loads(_AROUND.sub("", text), strict=False, parse_constant=str), True
    except (ValueError, RecursionError):
        return None, False


def _things(data: Any, most: int) -> Iterator[dict[str, Any]]:
    """The objects of JSON-LD: those at the top, in a graph, and what a page is mainly about."""
    waiting = [data]
    for one in waiting:
        if most <= 0:
            return
        if isinstance(one, list):
            waiting += one[:_MOST_NODES]
        elif isinstance(one, dict):
            most -= 1
            yield one
            waiting += [one[name] for name in ("@graph", "mainEntity", "mainEntityOfPage") if name in one]
