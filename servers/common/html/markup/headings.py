"""Corrects headings that a page does not close, or that contain blocks.

`<h2>Title<h2>` and `<h3>Title</h2>` are common mistakes. A parser then takes the blocks after the title for part of
the heading. But a short heading may really contain blocks, such as a label next to its text.
"""

from lxml.html import HtmlElement

from ..tree import BLOCKS, HEADINGS, length, names_in, squeeze

_MAX_HEADING = 100
"""Maximum length of a heading that contains blocks, in characters."""
_NEVER_IN_HEADINGS = names_in("blockquote details dl figure form hr ol p pre section table ul") | frozenset(HEADINGS)
"""Blocks that are never part of a heading."""


def end_headings(root: HtmlElement) -> None:
    """End each heading before the first block that does not belong to it, and turn blocks that belong to it into
    inline elements."""
    for heading in list(root.iter(*HEADINGS)):
        blocks = list(heading.iterdescendants(*BLOCKS))
        if not blocks:
            continue
        # A paragraph in the only child of a heading belongs to the heading: if the end tag of the heading were
        # missing, the paragraph would be a child of the heading itself.
        allowed = ("p",) if len(heading) == 1 and heading[0].tag not in BLOCKS and not squeeze(heading.text) else ()
        if (
            any(block.tag in _NEVER_IN_HEADINGS.difference(allowed) for block in blocks)
            or length(heading) > _MAX_HEADING
        ):
            _move_blocks_behind(heading)
        else:
            for block in blocks:
                block.tag = "span"
                block.text, block.tail = f" {block.text or ''}", f" {block.tail or ''}"


def _move_blocks_behind(heading: HtmlElement) -> None:
    """Move the blocks in a heading behind it. If there is no text before them, a short first block becomes the
    heading."""
    first = next(
        index
        for index, child in enumerate(heading)
        if child.tag in BLOCKS or next(child.iterdescendants(*BLOCKS), None) is not None
    )
    blocks = list(heading)[first:]
    parent = heading.getparent()
    if not (squeeze(heading.text) or any(length(child) or squeeze(child.tail) for child in heading[:first])):
        inner = blocks[0]
        is_short = not any(True for _ in inner.iterdescendants(*BLOCKS)) and length(inner) <= _MAX_HEADING
        if inner.tag not in _NEVER_IN_HEADINGS and is_short:
            inner.tag = heading.tag
        heading.tag = "div"
    elif parent is not None:
        blocks[-1].tail = f"{blocks[-1].tail or ''}{heading.tail or ''}"
        heading.tail = None
        index = parent.index(heading) + 1
        parent[index:index] = blocks
