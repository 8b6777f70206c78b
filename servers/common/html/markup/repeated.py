"""Finds accordion and tab panels that are shown only by scripts or style sheets and have no attributes linking them
to their controls.

They are recognized by repetition. An accordion has several hidden blocks with the same tag and class, each after a
short line without a link to another page. These lines have the same tag and class too. Tabs have a list of labels
and, after it, as many blocks with the same tag and class, one of which is visible. Menus look the same, but contain
links.
"""

from collections.abc import Collection, Hashable, Iterable
from itertools import islice

from lxml.html import HtmlElement

from ..tree import BLOCKS, has_text, is_alone, length, names_in

_EXCLUDED_ANCESTORS = names_in("nav header footer dialog menu select form label button a")
"""Elements whose hidden descendants are menus, messages and choices."""
_EXCLUDED_ROLES = names_in("navigation banner contentinfo dialog alertdialog menu menubar listbox search")
_MIN_AVERAGE_LENGTH = 60
"""Minimum average number of characters in the panels of a group. Shorter elements are tooltips or messages."""
_MAX_LABEL_LENGTH = 200
"""Maximum number of characters of a label."""
_MAX_LINKED_SHARE = 0.5
"""Maximum share of the text of panels that is links; menus have more."""
_MAX_LABEL_COUNT = 20
"""Maximum number of labels in a list, and of elements in which the list is searched."""
_SAME_PAGE_PREFIXES = ("#", "javascript:")

Shape = tuple[Hashable, ...]
"""The properties that similar elements have in common, such as tag and class."""


def repeated_panels(candidates: Iterable[HtmlElement], hidden: Collection[HtmlElement]) -> set[HtmlElement]:
    """Return those of the `candidates` that are panels. The candidates must be hidden, and none may contain
    another."""
    accordions: dict[Shape, list[HtmlElement]] = {}
    tabs: dict[HtmlElement, list[HtmlElement]] = {}
    for panel in candidates:
        if not _is_candidate(panel):
            continue
        for key in _group_keys(panel, hidden):
            accordions.setdefault(key, []).append(panel)
        tabs.setdefault(panel.getparent(), []).append(panel)
    groups = [panels for panels in accordions.values() if len(panels) > 1]
    groups += [panels for parent, panels in tabs.items() if _has_labels(parent, panels, hidden)]
    return {panel for panels in groups if _are_panels(panels) for panel in panels}


def _is_candidate(panel: HtmlElement) -> bool:
    """Return True if an element is a block of text outside menus, dialogs and forms."""
    if panel.tag not in BLOCKS or panel.getparent() is None or not has_text(panel):
        return False
    elements = (panel, *panel.iterancestors())
    return not any(
        element.tag in _EXCLUDED_ANCESTORS or element.get("role") in _EXCLUDED_ROLES for element in elements
    )


def _group_keys(panel: HtmlElement, hidden: Collection[HtmlElement]) -> Iterable[Shape]:
    """Yield keys that are equal for the panels of one accordion: the tag and class of the panel, those of the label,
    and the parent of the panels or of the items that contain one panel each."""
    outermost = panel
    while is_alone(outermost):
        outermost = outermost.getparent()
    before, item = outermost.getprevious(), outermost.getparent()
    if before is None or before in hidden or not _is_label(before):
        return
    shapes = (*_shape(panel), *_shape(before))
    yield *shapes, item
    yield *shapes, item.getparent(), *_shape(item)


def _has_labels(parent: HtmlElement, panels: list[HtmlElement], hidden: Collection[HtmlElement]) -> bool:
    """Return True if the blocks in an element have the same tag and first class, all but one are hidden, and a list
    with as many labels precedes them."""
    blocks = list(islice(parent, _MAX_LABEL_COUNT + 1))
    visible = [block for block in blocks if block not in hidden]
    shapes = {(block.tag, (block.get("class") or "").partition(" ")[0]) for block in blocks}
    if len(visible) != 1 or len(shapes) != 1 or len(blocks) != len(panels) + 1:
        return False
    outermost = parent if is_alone(visible[0]) or parent.getprevious() is not None else parent.getparent()
    before = None if outermost is None else outermost.getprevious()
    lists = () if before is None else islice(before.iter(), _MAX_LABEL_COUNT)
    return any(len(candidate) == len(blocks) and all(map(_is_label, candidate)) for candidate in lists)


def _is_label(element: HtmlElement) -> bool:
    """Return True if an element is a short text without a link to another page."""
    links = (link.get("href") or "#" for link in element.iter("a"))
    return 0 < length(element) <= _MAX_LABEL_LENGTH and all(link.startswith(_SAME_PAGE_PREFIXES) for link in links)


def _shape(element: HtmlElement) -> Shape:
    return element.tag, element.get("class")


def _are_panels(blocks: list[HtmlElement]) -> bool:
    """Return True if the blocks contain enough text, few links and few duplicates. Duplicates come from a
    template."""
    size = sum(map(length, blocks))
    linked = sum(length(link) for block in blocks for link in block.iter("a"))
    texts = {block.text_content().strip() for block in blocks}
    are_long = size >= _MIN_AVERAGE_LENGTH * len(blocks) or all(block.tag == "dd" for block in blocks)
    return are_long and linked < _MAX_LINKED_SHARE * size and 2 * len(texts) > len(blocks)
