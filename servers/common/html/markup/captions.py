"""Captions of figures that have no `figcaption`."""

from lxml.html import HtmlElement

from servers.common.html.tree import BLOCKS, MAX_CAPTION_LENGTH, length


def mark_captions(root: HtmlElement) -> None:
    """Make the only part of a figure with text other than links its caption."""
    for figure in root.iter("figure"):
        if figure.find(".//figcaption") is not None or figure.find(".//img") is None:
            continue
        texts = [child for child in figure if child.find(".//img") is None and _own_length(child)]
        if len(texts) == 1 and _is_paragraph(texts[0]) and length(figure) <= MAX_CAPTION_LENGTH:
            texts[0].tag = "figcaption"


def _is_paragraph(element: HtmlElement) -> bool:
    """Return True for a single paragraph: a caption is written as one line, which a table or a list can't be."""
    blocks = [element, *element.iterdescendants(*BLOCKS)]
    return all(block.tag in ("div", "p", "span") for block in blocks) and length(blocks[-1]) == length(element)


def _own_length(element: HtmlElement) -> int:
    return length(element) - sum(length(link) for link in element.iter("a"))
