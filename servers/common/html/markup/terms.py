"""Ends terms and descriptions whose end tags are missing, as browsers do. libxml2 nests those of the same tag."""

from lxml.html import HtmlElement

_TAGS = ("dt", "dd")


def end_terms(root: HtmlElement) -> None:
    """Move each term or description in another one behind it, with all that follows it there."""
    for element in list(root.iter(*_TAGS)):
        parent = element.getparent()
        if parent is not None and parent.tag in _TAGS:
            for following in reversed([element, *element.itersiblings()]):
                parent.addnext(following)
