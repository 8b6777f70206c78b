"""Finds text whose spaces and line breaks are significant although it is not in a `pre`.

Such text has the style `white-space`, is code of several lines that is alone in its block, or is in an `xmp` or in a
read-only field. It becomes a `pre` or `code`, or its line breaks become `br`.
"""

import re
from itertools import islice

from lxml.html import HtmlElement

from ..blocks import LINES
from ..tree import BLOCKS, squeeze

_STYLED = "//*[contains(@style, 'white-space')]"
_KEEPS_BREAKS = re.compile(r"white-space(?:-collapse)?\s*:\s*(?:pre|break-spaces)", re.IGNORECASE)
_KEEPS_ALL = re.compile(r"white-space\s*:\s*(?:pre(?:-wrap)?|break-spaces)\b(?!-)", re.IGNORECASE)
_MONOSPACE = re.compile(r"font(?:-family)?\s*:[^;]*\bmono", re.IGNORECASE)
_CODE = ("code", "samp", "kbd", "tt")
_PREFORMATTED = ("pre", "listing", "plaintext", "textarea")
_MIN_BREAKS = 2
"""Code with fewer line breaks in the HTML may be a single line, which the author of the HTML has wrapped."""
_TEXT_TYPES = ("text", "url")


def mark_preformatted(root: HtmlElement) -> None:
    """Turn preformatted text into `pre`, and significant line breaks in other text into `br`."""
    for element in list(root.iter("xmp")):
        element.tag = "pre"
    # Most read-only fields contain commands to copy.
    for field in root.xpath("//textarea[@readonly] | //input[@readonly][@value]"):
        if field.tag == "textarea":
            field.tag = "pre"
        elif (field.get("type") or "text").lower() in _TEXT_TYPES:
            field.tag, field.text = "code", field.get("value")
    for element in root.xpath(_STYLED):
        style = element.get("style")
        if not _KEEPS_BREAKS.search(style) or _is_preformatted(element):
            continue
        if (element.tag in _CODE or _MONOSPACE.search(style)) and _KEEPS_ALL.search(style) and _has_breaks(element):
            element.tag = "pre"
            continue
        for inner in list(element.iter()):
            _break_lines(inner, in_tail=False)
            if inner is not element:
                _break_lines(inner, in_tail=True)
    for element in list(root.iter(*_CODE)):
        if _has_breaks(element) and _is_alone_in_block(element) and not _is_preformatted(element):
            element.tag = "pre"


def _is_preformatted(element: HtmlElement) -> bool:
    return element.tag in _PREFORMATTED or next(element.iterancestors(*_PREFORMATTED), None) is not None


def _has_breaks(element: HtmlElement) -> bool:
    """Return True if an element has several lines: it contains a break, a block or marked lines of code, or several
    lines in the HTML."""
    if next(element.iter("br", "div", "p"), None) is not None:
        return True
    marked = (inner for inner in element if not LINES.isdisjoint((inner.get("class") or "").split()))
    if len(list(islice(marked, 2))) == 2:
        return True
    text = element.text_content()
    return text.count("\n") >= _MIN_BREAKS and "\n" in text.strip()


def _is_alone_in_block(element: HtmlElement) -> bool:
    """Return True if there is nothing else on an element's lines."""
    parent = element.getparent()
    if parent is None or parent.tag not in BLOCKS:
        return False
    before, after = element.getprevious(), element.getnext()
    texts = (element.tail, parent.text if before is None else before.tail)
    return not any(map(squeeze, texts)) and all(
        sibling is None or sibling.tag in BLOCKS for sibling in (before, after)
    )


def _break_lines(element: HtmlElement, *, in_tail: bool) -> None:
    text = (element.tail if in_tail else element.text) or ""
    if "\n" not in text or text.isspace():
        return
    first, *lines = text.split("\n")
    if in_tail:
        element.tail = first
    else:
        element.text = first
    for line in reversed(lines):
        line_break = element.makeelement("br")
        line_break.tail = line
        if in_tail:
            element.addnext(line_break)
        else:
            element.insert(0, line_break)
