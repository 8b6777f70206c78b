"""Headings that a page does not close, or that contain blocks.

`<h2>Title<h2>` and `<h3>Title</h2>` are common mistakes, after which a parser takes the following blocks for part of
the heading. A short heading may contain blocks, such as a label beside its text.
"""

from lxml.html import HtmlElement

from servers.common.html.tree import BLOCKS, HEADINGS, length, names_in, squeeze

_MAX_HEADING = 100
"""Maximum number of characters in a heading with blocks."""
_NEVER = names_in("blockquote details dl figure form hr ol p pre section table ul") | frozenset(HEADINGS)
"""Blocks that are never part of a heading."""


def end_headings(root: HtmlElement) -> None:
    """End each heading before the first block that is not a part of it, and write other blocks in it as one line."""
    for heading in list(root.iter(*HEADINGS)):
        blocks = list(heading.iterdescendants(*BLOCKS))
        if not blocks:
            continue
        # A paragraph that an element within the heading contains was not forgotten by the end of the heading.
        allowed = ("p",) if len(heading) == 1 and heading[0].tag not in BLOCKS and not squeeze(heading.text) else ()
        if any(block.tag in _NEVER.difference(allowed) for block in blocks) or length(heading) > _MAX_HEADING:
            _end(heading)
        else:
            for block in blocks:
                block.tag = "span"
                block.text, block.tail = f" {block.text or ''}", f" {block.tail or ''}"


def _end(heading: HtmlElement) -> None:
    """Move the blocks in a heading behind it. A heading without other text becomes its first block."""
    first = next(
        at
        for at, child in enumerate(heading)
        if child.tag in BLOCKS or next(child.iterdescendants(*BLOCKS), None) is not None
    )
    moved = list(heading)[first:]
    parent = heading.getparent()
    if not (squeeze(heading.text) or any(length(child) or squeeze(child.tail) for child in heading[:first])):
        inner = moved[0]
        is_short = not any(True for _ in inner.iterdescendants(*BLOCKS)) and length(inner) <= _MAX_HEADING
        if inner.tag not in _NEVER and is_short:
            inner.tag = heading.tag
        heading.tag = "div"
    elif parent is not None:
        moved[-1].tail = f"{moved[-1].tail or ''}{heading.tail or ''}"
        heading.tail = None
        at = parent.index(heading) + 1
        parent[at:at] = moved
