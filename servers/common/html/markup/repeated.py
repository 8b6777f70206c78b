"""Panels of accordions and tabs without attributes that connect them to their controls, opened only by scripts and
style sheets.

They are recognized by repetition. An accordion has several hidden blocks of one shape, each after a short line of one
shape that is not a link. Tabs have a list of labels and, after it, as many blocks of one shape; one of these is
visible. Menus have the same shapes, but contain links.
"""

from collections.abc import Collection, Hashable, Iterable
from itertools import islice

from lxml.html import HtmlElement

from servers.common.html.tree import BLOCKS, has_text, is_alone, length, names_in

_AROUND = names_in("nav header footer dialog menu select form label button a")
"""Elements whose hidden parts are menus, messages and choices."""
_AROUND_ROLES = names_in("navigation banner contentinfo dialog alertdialog menu menubar listbox search")
_MIN_AVERAGE = 60
"""Minimum average number of characters of panels. Shorter elements are tooltips or messages."""
_MAX_LABEL = 200
_LINKED = 0.5
_MAX_LABELS = 20
_NOWHERE = ("#", "javascript:")

Shape = tuple[Hashable, ...]


def repeated_panels(candidates: Iterable[HtmlElement], hidden: Collection[HtmlElement]) -> set[HtmlElement]:
    """Return the panels among the candidates, which are hidden elements that are not nested."""
    accordions: dict[Shape, list[HtmlElement]] = {}
    tabs: dict[HtmlElement, list[HtmlElement]] = {}
    for panel in candidates:
        if not _may_open(panel):
            continue
        for key in _places(panel, hidden):
            accordions.setdefault(key, []).append(panel)
        tabs.setdefault(panel.getparent(), []).append(panel)
    groups = [panels for panels in accordions.values() if len(panels) > 1]
    groups += [panels for around, panels in tabs.items() if _has_labels(around, panels, hidden)]
    return {panel for panels in groups if _are_panels(panels) for panel in panels}


def _may_open(panel: HtmlElement) -> bool:
    """Return True if an element is a block of text outside menus, dialogs and forms."""
    if panel.tag not in BLOCKS or panel.getparent() is None or not has_text(panel):
        return False
    around = (panel, *panel.iterancestors())
    return not any(element.tag in _AROUND or element.get("role") in _AROUND_ROLES for element in around)


def _places(panel: HtmlElement, hidden: Collection[HtmlElement]) -> Iterable[Shape]:
    """Yield keys that the panels of one accordion share: their shape, the label's shape, and the element around the
    panels or around the items that contain them."""
    outer = panel
    while is_alone(outer):
        outer = outer.getparent()
    before, item = outer.getprevious(), outer.getparent()
    if before is None or before in hidden or not _is_label(before):
        return
    shapes = (*_shape(panel), *_shape(before))
    yield *shapes, item
    yield *shapes, item.getparent(), *_shape(item)


def _has_labels(around: HtmlElement, panels: list[HtmlElement], hidden: Collection[HtmlElement]) -> bool:
    """Return True if the blocks in an element have the same tag and first class, all but one are hidden, and a list
    with as many labels precedes them."""
    blocks = list(islice(around, _MAX_LABELS + 1))
    visible = [block for block in blocks if block not in hidden]
    kinds = {(block.tag, (block.get("class") or "").partition(" ")[0]) for block in blocks}
    if len(visible) != 1 or len(kinds) != 1 or len(blocks) != len(panels) + 1:
        return False
    outer = around if is_alone(visible[0]) or around.getprevious() is not None else around.getparent()
    before = None if outer is None else outer.getprevious()
    lists = () if before is None else islice(before.iter(), _MAX_LABELS)
    return any(len(candidate) == len(blocks) and all(map(_is_label, candidate)) for candidate in lists)


def _is_label(element: HtmlElement) -> bool:
    """Return True if an element is a short text without a link to another page."""
    links = (link.get("href") or "#" for link in element.iter("a"))
    return 0 < length(element) <= _MAX_LABEL and all(link.startswith(_NOWHERE) for link in links)


def _shape(element: HtmlElement) -> Shape:
    return element.tag, element.get("class")


def _are_panels(blocks: list[HtmlElement]) -> bool:
    """Return True if blocks have texts of some length, few links, and few copies, which would come from a
    template."""
    size = sum(map(length, blocks))
    linked = sum(length(link) for block in blocks for link in block.iter("a"))
    texts = {block.text_content().strip() for block in blocks}
    are_long = size >= _MIN_AVERAGE * len(blocks) or all(block.tag == "dd" for block in blocks)
    return are_long and linked < _LINKED * size and 2 * len(texts) > len(blocks)
