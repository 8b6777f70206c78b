"""Finds the captions of figures that have no `figcaption`."""

from lxml.html import HtmlElement

from ..tree import MAX_CAPTION_LENGTH, is_paragraph, length


def mark_captions(root: HtmlElement) -> None:
    """Turn a child of a figure into its caption, if it is the only child with text outside links, and the text is a
    short paragraph."""
    for figure in root.iter("figure"):
        if figure.find(".//figcaption") is not None or figure.find(".//img") is None:
            continue
        texts = [
            child
            for child in figure
            if child.find(".//img") is None and length(child) > sum(length(link) for link in child.iter("a"))
        ]
        if len(texts) != 1 or texts[0].tag not in ("div", "p", "span") or length(figure) > MAX_CAPTION_LENGTH:
            continue
        if is_paragraph(texts[0]):
            texts[0].tag = "figcaption"
