"""Finds a part of a page by a CSS selector, a heading's text, or a URL fragment."""

from itertools import takewhile
from urllib.parse import unquote

from cssselect import SelectorError
from lxml.cssselect import CSSSelector
from lxml.etree import XPathError
from lxml.html import HtmlElement

from servers.common.html.tree import BLOCKS, HEADINGS, length, squeeze

from ...errors import FetchError

_MAX_NAME = 500
"""Maximum number of characters in a section's name."""
_MAX_HEADINGS = 20
"""Maximum number of headings that an error quotes."""
_MAX_ELEMENTS = 1_000
"""Maximum number of elements that a selector may return."""
_CONTAINERS = frozenset(("section", "article", "main", "dialog", "body", "html"))
"""The section of a heading ends, at the latest, with the innermost of these elements around the heading."""
_NEXT_HEADINGS = "following::*[self::h1 or self::h2 or self::h3 or self::h4]"


def find_section(root: HtmlElement, section: str) -> list[HtmlElement]:
    """Return the elements of a section, in order. If the section is that of a heading, everything else is removed
    from its container. Raises FetchError."""
    query = section.strip()
    if not query or len(query) > _MAX_NAME:
        raise FetchError("bad_argument", f"A section name must have 1 to {_MAX_NAME} characters")
    if query.startswith("#"):
        names = (query[1:], unquote(query[1:]))
        target = next((element for element in root.iter() if element.get("id") in names), None)
        if target is None:
            target = next((element for element in root.iter("a") if element.get("name") in names), None)
        if target is not None:
            return _find_anchor_elements(target)
    name = squeeze(query.lstrip("#")).casefold()
    headings = [(heading, squeeze(heading.text_content()).casefold()) for heading in root.iter(*HEADINGS)]
    exact = next((heading for heading, words in headings if words == name), None)
    if exact is not None:
        return [_keep_section(exact)]
    if matches := _select(root, query):
        return matches
    similar = next((heading for heading, words in headings if name and name in words), None)
    if similar is not None:
        return [_keep_section(similar)]
    texts = [text for heading in root.iter(*HEADINGS) if (text := squeeze(heading.text_content()))]
    if not texts:
        raise FetchError("not_found", "The page has no such section, and no headings", "Leave `section` out")
    shown = "\n".join(text[:100] for text in texts[:_MAX_HEADINGS])
    first = f"the first {_MAX_HEADINGS} of them are quoted" if len(texts) > _MAX_HEADINGS else "they are quoted"
    suggestion = f"Name one of its {len(texts)} headings; {first}"
    raise FetchError("not_found", "The page has no such section", suggestion, quoted=shown)


def _select(root: HtmlElement, selector: str) -> list[HtmlElement]:
    """Return the outermost elements that a selector matches; [] if there are none, or it is not a selector."""
    try:
        matches = CSSSelector(selector, translator="html")(root)
    except (SelectorError, XPathError, RecursionError):
        return []
    chosen: set[HtmlElement] = set()
    outermost: list[HtmlElement] = []
    for element in matches:
        if chosen.isdisjoint(element.iterancestors()):
            chosen.add(element)
            outermost.append(element)
    return outermost[:_MAX_ELEMENTS]


def _find_anchor_elements(target: HtmlElement) -> list[HtmlElement]:
    """Return the elements that belong to an anchor: a heading's section, a term with its description, the element
    itself, the block around it, or the next heading's section."""
    heading = next((element for element in (target, *target.iterancestors()) if element.tag in HEADINGS), None)
    if heading is not None:
        return [_keep_section(heading)]
    if target.tag == "script":
        return [target]
    if target.tag == "dt":
        return [target, *takewhile(lambda after: after.tag == "dd", target.itersiblings())]
    first = next(target.iter(*HEADINGS), None)
    if first is not None and length(first) == length(target):
        # Some generators wrap only the heading, and give the wrapper the id.
        return [_keep_section(first)]
    if length(target) and target.tag in BLOCKS:
        return [target]
    following = next(iter(target.xpath(_NEXT_HEADINGS)), None) if first is None else first
    block = next((element for element in target.iterancestors() if element.tag in BLOCKS), target)
    if length(block) and block.tag not in _CONTAINERS and (length(target) or following is None):
        return [block]
    return [target if following is None else _keep_section(following)]


def _keep_section(heading: HtmlElement) -> HtmlElement:
    """Return a heading with its section, up to the next heading of its level or above within its container."""
    container = heading.getparent()
    while container.getparent() is not None and (
        container.tag not in _CONTAINERS or length(container) == length(heading)
    ):
        container = container.getparent()
    following = iter(container.iter(*HEADINGS))
    next(other for other in following if other is heading)
    end = next((other for other in following if other.tag <= heading.tag), None)
    start = heading
    while start is not container:
        parent = start.getparent()
        parent.text = None
        for before in list(start.itersiblings(preceding=True)):
            parent.remove(before)
        start = parent
    if end is None:
        return container
    # Remove everything from the next heading on, but not the elements around it.
    removed = end
    while end is not container:
        parent = end.getparent()
        end.tail = None
        for after in list(end.itersiblings()):
            parent.remove(after)
        if end is removed:
            parent.remove(end)
        end = parent
    return container
