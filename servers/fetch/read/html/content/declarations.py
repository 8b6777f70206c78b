"""The declarations of a page for programs: its title, the kind of its subject, and descriptions of the subject.

The kinds of subjects are schema.org types, in JSON-LD (https://schema.org/docs/full.html) or in microdata, and Open
Graph types (https://ogp.me/#types).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from servers.common.html.tree import names_in

KINDS_OF_THINGS = {
    "product": names_in(
        "product productgroup productmodel individualproduct vehicle car book product.item og:product"
    ),
    "article": names_in(
        "article newsarticle blogposting techarticle scholarlyarticle report recipe howto review og:article"
    ),
    "thread": names_in("discussionforumposting qapage socialmediaposting question"),
    "list": names_in("itemlist collectionpage offercatalog searchresultspage product.group og:product.group"),
    "faq": names_in("faqpage"),
    "service": names_in("service softwareapplication webapplication mobileapplication localbusiness og:website"),
}
"""The kinds of subjects, each with its types in lowercase."""
_DESCRIPTIONS = ("name", "headline", "description", "articleBody", "text", "reviewBody")
_MAX_CHARACTERS = 200_000
"""Maximum number of characters of descriptions."""
_MAX_LEVELS = 4
"""Maximum depth of nested things that are searched for descriptions."""
_TAG = re.compile(r"<[^<>]*>")


class Declarations(NamedTuple):
    """The declarations of a page about its content."""

    title: str
    about: frozenset[str] = frozenset()
    """The kinds of subjects that the page describes, by their names in `KINDS_OF_THINGS`."""
    descriptions: Sequence[str] = ()


def combine_declarations(
    title: str, things: Sequence[dict[str, Any]], graph: Mapping[str, str], microdata: Iterable[str]
) -> Declarations:
    """Combine a page's declarations in JSON-LD, Open Graph, and microdata types."""
    types = {name.rstrip("/").rpartition("/")[2] for kinds in microdata for name in kinds.lower().split()}
    for thing in things:
        names = thing.get("@type")
        listed = names if isinstance(names, list) else [names]
        types |= {name.lower().rpartition("/")[2] for name in listed if isinstance(name, str)}
    types.add(f"og:{graph.get('og:type', '').lower()}")
    about = frozenset(kind for kind, kind_types in KINDS_OF_THINGS.items() if types & kind_types)
    texts: list[str] = [graph[name] for name in ("og:title", "og:description") if name in graph]
    remaining = _MAX_CHARACTERS
    for text in (text for thing in things for text in _find_descriptions(thing, _MAX_LEVELS)):
        texts.append(_TAG.sub(" ", text[:remaining]))
        remaining -= len(text)
        if remaining <= 0:
            break
    return Declarations(title, about, texts)


def _find_descriptions(value: Any, levels: int) -> Iterator[str]:
    """Yield the descriptions of a thing and of the things within it."""
    if isinstance(value, list) and levels:
        for inner in value:
            yield from _find_descriptions(inner, levels - 1)
    elif isinstance(value, dict) and levels:
        yield from (text for name in _DESCRIPTIONS if isinstance(text := value.get(name), str))
        for inner in value.values():
            if isinstance(inner, list | dict):
                yield from _find_descriptions(inner, levels - 1)
