"""Blocks of code: their text as it stands, and the language they are in."""

import re

from lxml.html import HtmlElement

__all__ = ["code_text", "language"]

_NAMED = re.compile(
    r"(?:^|\s)(?:language|lang|highlight-source|highlight-text|highlight|brush)[-:]\s?([\w+#.-]{1,30})(?![\w-])"
)
_NO_LANGUAGE = frozenset(
    ("none", "default", "text", "plain", "plaintext", "nohighlight", "notranslate", "wrapper", "source")
)
_GUTTERS = frozenset(
    ("gutter", "linenos", "lineno", "linenodiv", "line-numbers-rows", "line-number", "linenumber", "hljs-ln-numbers")
)
_LEVELS = 3
"""How far around a block its language may be named."""


def language(element: HtmlElement) -> str:
    """The language of a block of code, by its classes or those just around it; empty where none is named."""
    near = [*element.iter("code"), element]
    parent = element.getparent()
    while (
        parent is not None
        and len(near) < _LEVELS + 2
        and parent.tag in ("div", "figure", "td", "tr", "tbody", "table")
    ):
        near.append(parent)
        parent = parent.getparent()
    for one in near[:10]:
        named = one.get("data-lang") or one.get("data-language") or _in_classes(one.get("class") or "")
        if named and re.fullmatch(r"[\w+#.-]{1,30}", named) and named.lower() not in _NO_LANGUAGE:
            return str(named).lower()
    return ""


def code_text(element: HtmlElement) -> str:
    """The text with all its spaces and line breaks, without numbers of lines and the empty lines around it."""
    parts: list[str] = []
    _collect(element, parts)
    return "\n".join(line.rstrip() for line in "".join(parts).replace("\r\n", "\n").strip("\n").split("\n"))


def _collect(element: HtmlElement, parts: list[str]) -> None:
    parts.append(element.text or "")
    for child in element:
        if child.tag == "br":
            parts.append("\n")
        elif _GUTTERS.isdisjoint((child.get("class") or "").split()):
            _collect(child, parts)
            if child.tag in ("div", "p", "li", "tr") and parts and not parts[-1].endswith("\n"):
                parts.append("\n")
        parts.append(child.tail or "")


def _in_classes(classes: str) -> str:
    if found := _NAMED.search(classes):
        return found[1]
    if found := re.search(r"(?:^|\s)(?:sourceCode|highlight|code)\s+(\w{1,20})(?:\s|$)", classes):
        return found[1]
    return ""
