"""The declarations of a page for programs: its title, the kind of its subject, descriptions of the subject, and the
parts of a recipe.

The kinds of subjects are schema.org types, in JSON-LD (https://schema.org/docs/full.html) or in microdata, and Open
Graph types (https://ogp.me/#types).
"""

import html
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
_PARTS = ("recipeIngredient", "ingredients", "recipeInstructions", "step")
"""The properties of a `Recipe` (https://schema.org/Recipe) and of a `HowTo` whose texts the page shows one by one."""
_TEXTS_OF_STEP = ("name", "text", "itemListElement")
_MAX_CHARACTERS = 200_000
"""Maximum number of characters of descriptions, and of parts."""
_MAX_PART = 2_000
"""Maximum number of characters of one part."""
_MAX_LEVELS = 4
"""Maximum depth of nested things that are searched for descriptions."""
_TAG = re.compile(r"<[^<>]*>")


class Declarations(NamedTuple):
    """The declarations of a page about its content."""

    title: str
    about: frozenset[str] = frozenset()
    """The kinds of subjects that the page describes, by their names in `KINDS_OF_THINGS`."""
    descriptions: Sequence[str] = ()
    parts: frozenset[str] = frozenset()
    """The ingredients and the steps, each as `letters_of` returns it."""


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
    return Declarations(title, about, texts, _find_parts(things))


def letters_of(text: str) -> str:
    """Return the letters and digits of a text in one case, since a page and its JSON-LD differ in their signs."""
    return "".join(filter(str.isalnum, text.casefold()))


def _find_parts(things: Sequence[dict[str, Any]]) -> frozenset[str]:
    parts: set[str] = set()
    remaining = _MAX_CHARACTERS
    values = (thing.get(name) for thing in things for name in _PARTS)
    # Each level of steps is a list of objects.
    for text in (text for value in values for text in _find_texts(value, 2 * _MAX_LEVELS)):
        unescaped = html.unescape(text[:remaining])
        # A text may contain all steps. They are divided by line breaks or by tags, but a tag may also mark a word.
        lines = (line for divider in ("", "\n") for line in _TAG.sub(divider, unescaped).splitlines())
        parts.update(map(letters_of, lines))
        remaining -= len(text)
        if remaining <= 0:
            break
    return frozenset(part for part in parts if 0 < len(part) <= _MAX_PART)


def _find_texts(value: Any, levels: int) -> Iterator[str]:
    """Yield a text, or the texts of a list, a step or a section of steps."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list) and levels:
        for inner in value:
            yield from _find_texts(inner, levels - 1)
    elif isinstance(value, dict) and levels:
        for name in _TEXTS_OF_STEP:
            yield from _find_texts(value.get(name), levels - 1)


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
