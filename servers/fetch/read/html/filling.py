"""Content made whole: what was chosen of a page has holes, and says only one of several like parts.

The rules go by structure. A line of which one text was chosen is content as a whole. What stands between content, in
the element that holds most of it, is content unless it is around it, leads elsewhere, or is a picture with its
caption. So are other elements of the same kind: the further posts of a thread, the further parts of an article.
"""

from itertools import islice

from lxml.html import HtmlElement

from servers.fetch.read.html.boilerplate import introduces, is_around, is_list_of_pages, is_teaser
from servers.fetch.read.html.tree import BLOCKS, HEADINGS, Span, Texts

_MOST_OF_IT = 0.95
"""The share of the content that the element holds in which holes are filled."""
_NOT_PARTED = frozenset(("p", "pre", "table", "ul", "ol", "dl", "blockquote"))
_SHOWN = ("table", "pre", "code", "math", "blockquote")
"""What a figure may show besides pictures."""
_LAYOUT = frozenset(("container", "row", "wrapper", "inner", "col", "column"))
"""Names that are given to anything."""
_MANY_LINKS, _FEW_LINKS = 0.5, 0.2
"""The share of links in a text that is none between content, and before or after it."""
_LONG = 80
"""Characters of a text that is content though it stands after all other content."""
_SHORT = 60
"""Characters of a heading that is one though it is a link, and of an element that is no further part."""
_FURTHER = 100
"""Characters that all further parts have together."""
_NEAR = 40
"""Texts after the headline in which a sentence that introduces what follows is looked for."""
_INTRODUCTION = 40
"""Characters of such a sentence, and of what stands before all other content."""
_TITLES = (*HEADINGS[1:], "dt", "summary")
_RUNNING = ("p", "h2", "h3", "ul")
"""What stands beside each other in a text that is written by hand."""
_BESIDE = 50
"""Elements after another that are looked at."""
_LEVELS = 4
"""How far around the content further parts like it are looked for."""
_PARTS = ("p", "li", "dd", "td")


def fill(texts: Texts) -> None:
    """Add to the content of a page what it lacks."""
    kept = {line for line, one in zip(texts.lines, texts.kept, strict=True) if one}
    for number, line in enumerate(texts.lines):
        if line in kept:
            texts.kept[number] = 1
    texts.count()
    region = _region(texts)
    for part in _further_parts(texts, region):
        _add(texts, part)
    texts.count()
    first, end = texts.spans[region]
    between = texts.kept.find(1, first, end), texts.kept.rfind(1, first, end)
    _fill_within(texts, region, between)
    _fill_introduction(texts, between[0])
    texts.count()


def _region(texts: Texts) -> HtmlElement:
    """The innermost element that holds most of the content."""
    region = texts.root
    enough = _MOST_OF_IT * texts.content(texts.spans[region])
    while True:
        inner = next((child for child in region if texts.content(texts.spans[child]) >= enough), None)
        if inner is None or inner.tag in _NOT_PARTED:
            return region
        region = inner


def _further_parts(texts: Texts, region: HtmlElement) -> list[HtmlElement]:
    """Other elements like the one that holds the content, or like one just around it."""
    for _ in range(_LEVELS):
        if region is texts.root:
            break
        around = set(region.iterancestors())
        found = [part for part in _alike(texts.root, region, around) if _is_part(texts, part, around)]
        if texts.within(found) >= _FURTHER:
            return found
        region = region.getparent()
    return []


def _alike(root: HtmlElement, element: HtmlElement, around: set[HtmlElement]) -> list[HtmlElement]:
    """The elements of the same tag and class, and the panels of the same tabs, none within another."""
    parent, name = element.getparent(), element.get("class")
    taken = {element}
    for other in root.iter(element.tag):
        beside = other.getparent() is parent
        its_name = other.get("class")
        same = (its_name == name and (beside or name) and name not in _LAYOUT) or (
            beside and element.get("role") == other.get("role") == "tabpanel"
        )
        if same and other not in around and taken.isdisjoint((other, *other.iterancestors())):
            taken.add(other)
    return [one for one in taken if one is not element]


def _is_part(texts: Texts, element: HtmlElement, around: set[HtmlElement]) -> bool:
    span = texts.spans[element]
    if texts.size(span) < _SHORT or texts.linked(span) > _MANY_LINKS * texts.size(span):
        return False
    if any(is_around(one) for one in (element, *element.iterancestors()) if one not in around):
        return False
    return not is_teaser(texts, element)


def _add(texts: Texts, element: HtmlElement) -> None:
    """Make what an element holds content, but for what is around content in it."""
    texts.put(texts.spans[element], kept=True)
    for inner in element.iterdescendants():
        span = texts.spans[inner]
        if span[0] < span[1] and is_around(inner) and next(inner.iterancestors("pre", "code"), None) is None:
            texts.put(span, kept=False)


def _fill_within(texts: Texts, element: HtmlElement, between: Span) -> None:
    """Fill the holes of an element that holds content: bare texts between blocks, and blocks."""
    number, end = texts.spans[element]
    for child in element:
        span = texts.spans[child]
        if span[0] == span[1] or not (texts.content(span) or _is_block(child)):
            continue
        _fill_bare(texts, (number, span[0]), between)
        number = span[1]
        if texts.content(span) == texts.size(span) or child.tag == "pre":
            continue
        if texts.content(span):
            _fill_within(texts, child, between)
        elif _belongs(texts, child, between):
            _add(texts, child)
    _fill_bare(texts, (number, end), between)


def _fill_introduction(texts: Texts, end: int) -> None:
    """Add the sentence under the headline, which may stand far from what follows it."""
    headline = next((one for one in texts.root.iter("h1") if texts.within((one,))), None)
    if headline is None:
        return
    start = texts.spans[headline][1]
    for number in range(start, min(end, start + _NEAR)):
        holder = texts.holder(number)
        for element in (holder, *holder.iterancestors()):
            span = texts.spans[element]
            if not start <= span[0] < span[1] <= end or is_around(element):
                break
            if introduces(element) and _is_said(texts, span, _INTRODUCTION) and not is_teaser(texts, element):
                _add(texts, element)
                return


def _is_block(element: HtmlElement) -> bool:
    return element.tag in BLOCKS or next(element.iterdescendants(*BLOCKS), None) is not None


def _fill_bare(texts: Texts, span: Span, between: Span) -> None:
    """Bare texts are content where they stand between content, and do not lead elsewhere; or label what follows."""
    if span[0] == span[1] or any(texts.kept[span[0] : span[1]]):
        return
    if span[1] == between[0]:
        belongs = texts.holder(span[0]).tag == "label" or _is_said(texts, span, _INTRODUCTION)
    else:
        belongs = between[0] < span[0] < span[1] <= between[1] and _is_said(texts, span, 1, _MANY_LINKS)
    if not belongs:
        return
    for number in range(*span):
        texts.kept[number] = not is_around(texts.holder(number))


def _belongs(texts: Texts, element: HtmlElement, between: Span) -> bool:
    """Whether a block without content, beside such with content, belongs to them."""
    span = texts.spans[element]
    size, linked = texts.size(span), texts.linked(span)
    if is_around(element) or not _says_something(texts, element):
        return False
    if is_teaser(texts, element) or is_list_of_pages(texts, element):
        return False
    if between[0] < span[0] and span[1] <= between[1]:
        if element.tag in HEADINGS:
            return linked < size or size < _SHORT
        return linked <= _MANY_LINKS * size or element.tag in _PARTS
    if span[0] <= between[0]:
        return _leads_in(texts, element)
    return element.tag not in HEADINGS and _is_said(texts, span, _LONG)


def _leads_in(texts: Texts, element: HtmlElement) -> bool:
    """Whether an element before all content is the heading of what follows, or stands in one text with it."""
    following = [one for one in islice(element.itersiblings(), _BESIDE) if texts.within((one,))]
    if element.tag in _TITLES:
        return bool(following) and bool(texts.content(texts.spans[following[0]]))
    beside = any(one.tag in _RUNNING and texts.content(texts.spans[one]) for one in following)
    return beside and _is_said(texts, texts.spans[element], _INTRODUCTION)


def _says_something(texts: Texts, element: HtmlElement) -> bool:
    """Whether an element may be read: no headline of its own, no picture with a caption, no field to fill in."""
    if element.tag == "h1":
        return next(islice(texts.root.iter("h1"), 2, None), None) is not None
    captions = texts.within(element.iter("figcaption"))
    if captions >= texts.within((element,)) or (
        element.tag == "figure" and next(element.iter(*_SHOWN), None) is None
    ):
        return False
    if element.tag in ("form", "fieldset"):
        return any(texts.size(texts.spans[part]) >= 30 for part in element.iter(*_PARTS))
    return True


def _is_said(texts: Texts, span: Span, least: int, links: float = _FEW_LINKS) -> bool:
    """Whether texts have some length, and are hardly links."""
    return texts.size(span) >= least and texts.linked(span) <= links * texts.size(span)
