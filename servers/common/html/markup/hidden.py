"""Hidden content, removed from a page before it is read.

A page may contain text that people don't see but that gives instructions to programs. Removed elements are counted,
except those that no page shows, such as scripts. Content that a control of the page opens is shown (`panels`), and
embedded content is linked (`embedded`).

Styles count only if they are inline, or simple rules in the page's own style sheets with a single tag, class or id as
selector. Only properties that can be evaluated without layout are considered. External style sheets are not loaded,
and rules for media other than screens, or under a condition, are ignored. A CSS parser, tinycss2, was tried: it takes
346 ms instead of 7 for 430 KB, and 75 microseconds instead of 13 for one style.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from lxml.etree import iterwalk, strip_elements
from lxml.html import HtmlElement

from servers.common.html.invisible import strip_invisible
from servers.common.html.markup.embedded import show_embedded
from servers.common.html.markup.panels import open_panels
from servers.common.html.tree import drop, length, outermost, squeeze

_MACHINERY = ("script", "style", "template", "noscript", "noframes", "noembed", "object", "embed", "applet", "canvas")
"""Elements that no page shows: scripts, sheets, templates, and their fallbacks."""
_MAX_CHARACTERS = 500_000
"""Maximum total size of a page's style sheets, in characters."""
_MAX_VALUE = 200
"""Maximum number of characters of a property's value that are examined."""
_MAX_RULES = 5_000
"""Maximum number of selectors whose rules are remembered."""
_COMMENTS = re.compile(r"/\*.*?(?:\*/|$)", re.DOTALL)
_BRACES = re.compile(r"([{}])")
_SHOWS = re.compile(r"display\s*:|visibility\s*:|opacity\s*:|position\s*:|clip", re.IGNORECASE)
_SIMPLE = re.compile(r"([a-z][a-z0-9]*)?(?:([.#])(-?[_a-z][\w-]*))?", re.IGNORECASE)
_SHOWN_MEDIA = re.compile(r"@(?:media\s+(?:all|screen|only screen)|layer\b[^;]*|supports\b[^;]*)\s*", re.IGNORECASE)
_ZERO = r"[-+]?0*\.?0+(?:[a-z]+|%)?"
_FAINT = r"0*\.?0\d*%?"
_TINY = r"(?:[01]|[01]?\.\d+)(?:px|pt)|" + _ZERO
_FAR = r"-\d{4,}(?:\.\d+)?(?:px|r?em|pt|%)|-\d{3,}(?:r?em|v[wh])"
_SUSPECT = re.compile(r"none|hidden|collapse|opacity|clip|-\d{3}|scale|transparent|rgba", re.IGNORECASE)
"""Matches part of every style that hides, so that most styles need not be parsed."""
_COLOR = re.compile(r"(?<!-)color\s*:")
_TAKEN_BACK = frozenset(("display", "visibility", "content-visibility", "opacity", "height", "max-height"))
"""Properties that hide a panel only until its control has opened it."""
_NOT_HIDING = frozenset(("html", "body", "main", "article"))
"""Elements that a style sheet's rule hides only until a script has run."""


def remove_hidden(root: HtmlElement) -> tuple[int, int]:
    """Remove elements hidden by attributes and styles, and invisible characters; open panels, and link embedded
    content.

    Return the number of removed elements with text, and of removed characters.
    """
    rules = sheet_rules(root)
    show_embedded(root)
    strip_elements(root, *_MACHINERY, with_tail=False)
    hidden, opened = open_panels(
        root,
        lambda element: _is_hidden(element) or rules.hide(element),
        lambda element: _is_hidden(element, opened=True) or rules.hide(element, opened=True),
    )
    elements = sum(bool(length(element)) for element in hidden)
    for element in hidden:
        drop(element)
    for element in opened:
        for name in ("hidden", "style"):
            element.attrib.pop(name, None)
    if any(_is_large_enough(element) is False for element in root.xpath("//*[@style]")):
        elements += sum(
            _remove_tiny_text(element)
            for element in outermost(root, lambda element: _is_large_enough(element) is False)
        )
    return elements, _remove_invisible(root)


def _is_large_enough(element: HtmlElement) -> bool | None:
    """Return True if an element's style makes its text large enough to be seen; None if it sets no size."""
    style = element.get("style") or ""
    size = _parse_declarations(style).get("font-size") if "font" in style.lower() else None
    return None if size is None else not re.fullmatch(_TINY, size)


def _remove_tiny_text(element: HtmlElement) -> bool:
    """Remove the text of an element with font size zero, except in inner elements that set a size."""
    had = False
    walk = iterwalk(element, events=("start",))
    for _, inner in walk:
        if inner is not element:
            had |= bool(squeeze(inner.tail))
            inner.tail = None
        if _is_large_enough(inner):
            walk.skip_subtree()
        else:
            had |= bool(squeeze(inner.text))
            inner.text = None
    return had


def _is_hidden(element: HtmlElement, *, opened: bool = False) -> bool:
    """Return True if an element's own attributes hide it, even after a control has `opened` it."""
    if element.tag in ("html", "body", "head"):
        return False
    if element.get("hidden") is not None and not opened:
        return True
    style = element.get("style")
    return bool(style) and hides(style, opened=opened)


def _remove_invisible(root: HtmlElement) -> int:
    """Remove the invisible characters from every text and attribute of a tree, and return their number."""
    removed = 0
    for element in root.iter():
        if element.text and not element.text.isascii():
            element.text, count = strip_invisible(element.text)
            removed += count
        if element.tail and not element.tail.isascii():
            element.tail, count = strip_invisible(element.tail)
            removed += count
        for name, value in element.items():
            if not value.isascii():
                visible, count = strip_invisible(value)
                element.set(name, visible)
                removed += count
    return removed


# Styles that hide elements


class Rules(NamedTuple):
    """The elements that style sheets hide, by tag (as `tag`), class (`.name`, `tag.name`) and id (`#name`)."""

    hidden: frozenset[str] = frozenset()
    lasting: frozenset[str] = frozenset()
    """The hidden elements that stay hidden even after a control has opened them."""

    def hide(self, element: HtmlElement, *, opened: bool = False) -> bool:
        """Return True if a rule hides an element, even after a control has `opened` it."""
        tag = element.tag
        hidden = self.lasting if opened else self.hidden
        if not hidden or tag in _NOT_HIDING:
            return False
        if tag in hidden:
            return True
        classes, identifier = element.get("class"), element.get("id")
        names = [f".{name}" for name in classes.split()] if classes else []
        names += [f"#{identifier}"] if identifier else []
        return any(name in hidden or tag + name in hidden for name in names)


def sheet_rules(root: HtmlElement) -> Rules:
    """Return the rules that hide elements in the style sheets within an element. A later rule that shows the same
    elements cancels a rule."""
    hidden: dict[str, bool | None] = {}
    room = _MAX_CHARACTERS
    for sheet in root.iter("style"):
        text = (sheet.text or "")[:room]
        room -= len(text)
        if (sheet.get("media") or "all").strip().lower() not in ("all", "screen"):
            continue
        for selector, declarations in _rules(text):
            if len(hidden) >= _MAX_RULES:
                break
            _record_rule(selector, declarations, hidden)
    names = [name for name, lasts in hidden.items() if lasts is not None]
    return Rules(frozenset(names), frozenset(name for name in names if hidden[name]))


def hides(style: str, *, opened: bool = False) -> bool:
    """Return True if CSS declarations hide the elements that they apply to.

    With `opened`, declarations that are cancelled when a control opens the element do not count.
    """
    if not _SUSPECT.search(style) and not ("background" in (low := style.lower()) and _COLOR.search(low)):
        return False
    declared = _parse_declarations(style)
    if opened:
        declared = {name: value for name, value in declared.items() if name not in _TAKEN_BACK}
    if declared.get("display") == "none" or declared.get("visibility") in ("hidden", "collapse"):
        return True
    if re.fullmatch(_FAINT, declared.get("opacity", "")) or declared.get("content-visibility") == "hidden":
        return True
    if re.search(r"opacity\(\s*0*\.?0\d*%?\s*\)", declared.get("filter", "")) or re.search(
        _FAR, declared.get("text-indent", "")
    ):
        return True
    return _is_cut(declared) or _is_off_screen(declared) or _is_one_color(declared)


def _is_cut(declared: dict[str, str]) -> bool:
    """Return True for a box so small that nothing in it is visible."""
    if declared.get("position") in ("absolute", "fixed"):
        corners = re.fullmatch(r"rect\((.*)\)", declared.get("clip", ""))
        if corners and re.fullmatch(r"(?:(?:[01](?:px)?|auto)[\s,]*)+", corners[1]) and "0" in corners[1]:
            return True
    if re.search(r"scale[xy]?\(\s*0\s*[,)]", declared.get("transform", "")):
        return True
    if re.search(r"inset\(\s*(?:50|100)%|circle\(\s*0", declared.get("clip-path", "")):
        return True
    cut = re.match(r"hidden|clip", declared.get("overflow", ""))
    sizes = [declared.get(name, "") for name in ("width", "height", "max-width", "max-height")]
    small = [bool(re.fullmatch(r"1px|" + _ZERO, size)) for size in sizes]
    return bool(cut) and (any(re.fullmatch(_ZERO, size) for size in sizes) or all(small[:2]))


def _is_off_screen(declared: dict[str, str]) -> bool:
    """Return True for a position off the screen."""
    is_positioned = declared.get("position") in ("absolute", "fixed", "relative")
    sides = (
        ("left", "right", "top", "bottom", "inset-inline-start") if is_positioned else ("margin-left", "margin-top")
    )
    if any(re.match(_FAR, declared.get(name, "")) for name in sides):
        return True
    return bool(re.search(rf"translate[xy3d]*\([^)]*(?:{_FAR})", declared.get("transform", "")))


def _is_one_color(declared: dict[str, str]) -> bool:
    """Return True for text in the color of its background, or transparent text."""
    # A background that is clipped to the text gives it its color.
    if "text" in (declared.get("background-clip", ""), declared.get("-webkit-background-clip", "")):
        return False
    color = _color(declared.get("color", ""))
    background = _color(declared.get("background-color") or declared.get("background", ""))
    return color == "transparent" or (color != "" and color == background)


def _color(text: str) -> str:
    """Return a color in one notation, if it has several common ones."""
    text = text.replace(" ", "")
    if short := re.fullmatch(r"#([0-9a-f])([0-9a-f])([0-9a-f])", text):
        text = "#" + "".join(digit * 2 for digit in short.groups())
    if numbers := re.fullmatch(r"rgba?\((\d{1,3}),(\d{1,3}),(\d{1,3})(?:,([\d.]+%?))?\)", text):
        if numbers[4] and not float(numbers[4].rstrip("%").strip(".") or 0):
            return "transparent"
        text = "#" + "".join(f"{min(int(number), 255):02x}" for number in numbers.groups()[:3])
    return {"white": "#ffffff", "black": "#000000", "#00000000": "transparent"}.get(text, text)


def _parse_declarations(style: str) -> dict[str, str]:
    """Return the declarations, with names and values in lowercase."""
    declared: dict[str, str] = {}
    important: dict[str, str] = {}
    for declaration in _COMMENTS.sub("", style).lower().split(";"):
        name, colon, value = declaration.partition(":")
        value, bang, _ = value.partition("!")
        if colon:
            # The last one of a name counts, unless another is important.
            (important if bang else declared)[name.strip()] = value.strip()[:_MAX_VALUE]
    return declared | important


def _rules(sheet: str) -> Iterator[tuple[str, str]]:
    """Yield the selectors and declarations that apply to screens."""
    head = ""
    skipped: list[bool] = []
    parts = _BRACES.split(_COMMENTS.sub("", sheet))
    for text, brace in zip(parts[::2], parts[1::2], strict=False):
        if brace == "{":
            selector = text.rpartition(";")[2].strip()
            group = selector.startswith("@")
            skipped.append((group and not _SHOWN_MEDIA.fullmatch(selector)) or bool(skipped and skipped[-1]))
            head = "" if group else selector
        else:
            if head and skipped and not skipped[-1]:
                yield head, text
            head = ""
            if skipped:
                skipped.pop()


def _record_rule(selectors: str, declarations: str, hidden: dict[str, bool | None]) -> None:
    """Record for each simple selector whether its rule hides elements even when opened (True), or only until then
    (False)."""
    # Most rules have no simple selector, so their declarations need not be parsed.
    simple_selectors = [
        simple for selector in selectors.split(",") if (simple := _SIMPLE.fullmatch(selector.strip())) and simple[0]
    ]
    if not simple_selectors:
        return
    hiding = hides(declarations)
    if not hiding and not (hidden and _SHOWS.search(declarations)):
        return
    for simple in simple_selectors:
        name = (simple[1] or "").lower() + (simple[2] or "") + (simple[3] or "")
        if hiding:
            hidden[name] = hides(declarations, opened=True)
        elif name in hidden:
            hidden[name] = None
