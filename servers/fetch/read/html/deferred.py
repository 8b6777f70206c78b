"""Moves markup that a page sends late or separately to the place at which a browser would show it.

A streaming server sends a placeholder with a fallback, then the content in a hidden element, and a call to a short
script that moves it: React as `$RC("B:0","S:0")` for a boundary and `$RS("S:1","P:1")` for a segment, or as templates
with the same ids for its external runtime; Solid as `$df("0-0")`; Marko as `$af("0")`, where `af` may end with the
name of its runtime. No script is run: this module parses the calls, and makes the same moves. React and Solid mark
the end of the fallback with a comment. The parser drops comments, so `expose_boundaries` first turns these comments
into empty templates.

A declarative shadow root (https://html.spec.whatwg.org/#attr-template-shadowrootmode) is shown instead of its host's
children, which are shown in its slots. Its style sheets apply only to it.

Angular and Qwik send their text in place, between comments. The slots of Astro's islands are templates that only a
framework shows, and server islands need a separate request; neither is shown.
"""

import re
from collections.abc import Iterator

from lxml.etree import SubElement, iterwalk, strip_elements
from lxml.html import HtmlElement

from servers.common.html.markup.hidden import sheet_rules
from servers.common.html.tree import drop

_STREAM_SIGNS = ("$RC(", "$RR(", "$RS(", "$df(", "data-rci", "data-rri", "data-rsi")
"""Strings that indicate streaming in the source of a page."""
_EDGE_COMMENT = re.compile(r"<!--(\$[?!~]?|/\$|pl-[\w-]{1,100})-->")
_EDGE_ATTRIBUTE = "data-edge"
_CALLS = re.compile(
    r"""\$(RC|RR|RS|df|af\w{0,50})\(\s*["']?([\w:.-]{1,100})["']?(?:\s*,\s*["']([\w:.-]{1,100})["'])?"""
)
_MAX_CALLS = 2_000
"""Maximum number of moves on one page."""
_MODES = ("open", "closed")


def expose_boundaries(text: str) -> str:
    """Turn the comments that end a boundary into templates, if the page is streamed."""
    if not any(sign in text for sign in _STREAM_SIGNS):
        return text
    return _EDGE_COMMENT.sub(rf'<template {_EDGE_ATTRIBUTE}="\1"></template>', text)


def place_deferred(root: HtmlElement) -> None:
    """Move streamed content and shadow roots to where a browser shows them. The tree must still have scripts."""
    moves = list(_find_moves(root))
    if not moves and next(root.iter("script"), None) is None:
        # The page was saved without its scripts. React gives a placeholder and its content the same number. The
        # fallback stays, since its end is unknown.
        placeholders = [name for name in root.xpath("//template/@id") if name.startswith(("B:", "P:"))]
        moves = [(None, name, f"S{name[1:]}") for name in placeholders]
    moves = moves[:_MAX_CALLS]
    names = {name for move in moves for name in move[1:]}
    targets: dict[str, HtmlElement] = {}
    if names:
        for element in root.iter():
            if (name := element.get("id")) in names:
                targets.setdefault(name, element)
    for fallback_end, placeholder_name, content_name in moves:
        placeholder, content = targets.pop(placeholder_name, None), targets.pop(content_name, None)
        if (
            placeholder is None
            or content is None
            or content in placeholder.iterancestors()
            or placeholder in content.iterancestors()
        ):
            continue
        if fallback_end is not None:
            _drop_fallback(placeholder, fallback_end)
        _replace(placeholder, content)
    _show_shadow_roots(root)


_Move = tuple[str | None, str, str]
"""The edge at which a fallback ends, if any, and the ids of the placeholder and of the content."""


def _find_moves(root: HtmlElement) -> Iterator[_Move]:
    """Yield the moves that the scripts of a page make, and those that templates for React's external runtime
    describe, in order."""
    for element in root.iter("script", "template"):
        if element.tag == "script":
            yield from filter(None, (_parse_call(*call) for call in _CALLS.findall(element.text or "")))
            continue
        content, place, boundary = (element.get(name) or "" for name in ("data-sid", "data-pid", "data-bid"))
        if content:
            yield (None, place, content) if element.get("data-rsi") is not None else ("/$", boundary, content)


def _parse_call(name: str, first: str, second: str) -> _Move | None:
    if name == "df":
        return f"pl-{first}", f"pl-{first}", first
    if name.startswith("af"):
        return None, f"{name}ph{first}", f"{name}{first}"
    if not second:
        return None
    return (None, second, first) if name == "RS" else ("/$", first, second)


def _drop_fallback(placeholder: HtmlElement, edge: str) -> None:
    """Remove the elements after a placeholder up to the edge that closes it, or to the end of its parent."""
    placeholder.tail = None
    inner = 0
    while (sibling := placeholder.getnext()) is not None:
        kind = sibling.get(_EDGE_ATTRIBUTE) or ""
        if kind == edge and not inner:
            return
        inner += kind.startswith("$")
        inner -= kind == "/$"
        placeholder.getparent().remove(sibling)


def _replace(element: HtmlElement, content: HtmlElement) -> None:
    """Replace an element by the contents of `content`."""
    text, children = content.text, list(content)
    drop(content)
    parent = element.getparent()
    before = element.getprevious()
    if before is not None:
        before.tail = (before.tail or "") + (text or "")
    else:
        parent.text = (parent.text or "") + (text or "")
    for child in children:
        element.addprevious(child)
    drop(element)


def _show_shadow_roots(root: HtmlElement) -> None:
    for template in list(root.iter("template")):
        host = template.getparent()
        # A template inside another template that is not shown is not shown either.
        if (
            template.get("shadowrootmode") not in _MODES
            or host is None
            or any(holder.get("shadowrootmode") not in _MODES for holder in template.iterancestors("template"))
        ):
            continue
        rules = sheet_rules(template)
        for element in template.iterdescendants():
            if rules.hide(element):
                element.set("hidden", "")
        strip_elements(template, "style", with_tail=False)
        _fill_slots(host, template)


def _fill_slots(host: HtmlElement, template: HtmlElement) -> None:
    """Replace the host's children with the contents of its template, and put the children into the slots."""
    words = host.text or ""
    host.text = None
    assigned: dict[str, list[HtmlElement]] = {}
    for child in list(host):
        name = child.get("slot") or ""
        tail, child.tail = child.tail or "", None
        if child is not template:
            host.remove(child)
            assigned.setdefault(name, []).append(child)
        if unnamed := assigned.get(""):
            unnamed[-1].tail = (unnamed[-1].tail or "") + tail
        else:
            words += tail
    if words.strip():
        assigned.setdefault("", [])
    slots: dict[str, HtmlElement] = {}
    for slot in _find_slots(template):
        slots.setdefault(slot.get("name") or "", slot)
    for name, children in assigned.items():
        # A browser does not show a child without a slot, so it becomes hidden text.
        target = slots.get(name)
        if target is None:
            target = SubElement(host, "div", hidden="")
        for inner in list(target):
            target.remove(inner)
        target.text = None if name else words
        target.extend(children)
    template.drop_tag()


def _find_slots(template: HtmlElement) -> list[HtmlElement]:
    """Return the slots of a shadow root, without those of nested roots."""
    slots: list[HtmlElement] = []
    walk = iterwalk(template, events=("start",))
    for _, element in walk:
        if element.tag == "template" and element is not template:
            walk.skip_subtree()
        elif element.tag == "slot":
            slots.append(element)
    return slots
