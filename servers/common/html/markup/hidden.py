"""Removes hidden content from a page before it is read.

A page may contain text that people don't see but that gives instructions to programs. Removed elements are counted,
except those that browsers never show, such as scripts. Content that a control of the page opens is kept (`panels`),
and embedded content becomes links (`embedded`).

Only two kinds of styles are considered: inline styles, and rules in the page's own style sheets whose selector is a
tag, a class or an id, or a tag with one of these. Only properties that can be evaluated without layout count.
External style sheets are not loaded, and rules for media other than screens, or under a condition, are ignored. A CSS
parser, tinycss2, was tried: it takes 346 ms instead of 7 for 430 KB, and 75 microseconds instead of 13 for one style.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from lxml.etree import iterwalk, strip_elements
from lxml.html import HtmlElement

from ..invisible import strip_invisible
from ..tree import drop, length, outermost, squeeze
from .embedded import show_embedded
from .panels import open_panels

_NEVER_SHOWN = (
    "script",
    "style",
    "template",
    "noscript",
    "noframes",
    "noembed",
    "object",
    "embed",
    "applet",
    "canvas",
)
"""Elements that browsers never show, or only as a fallback. Objects are removed after `show_embedded` replaced those
with an address."""
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
"""Every style that hides an element matches this, except some that set colors. Other styles need not be parsed."""
_COLOR = re.compile(r"(?<!-)color\s*:")
_CANCELLED_BY_OPENING = frozenset(("display", "visibility", "content-visibility", "opacity", "height", "max-height"))
"""Properties that a control changes when it opens a panel. They hide the panel only until it is opened."""
_SHOWN_BY_SCRIPTS = frozenset(("html", "body", "main", "article"))
"""Elements that a style sheet only hides until a script has run. So rules that hide them are ignored."""


def remove_hidden(root: HtmlElement) -> tuple[int, int]:
    """Remove elements that attributes and styles hide, and invisible characters. Open panels, and replace embedded
    content by links.

    Return the number of removed elements with text, and of removed characters.
    """
    rules = sheet_rules(root)
    show_embedded(root)
    strip_elements(root, *_NEVER_SHOWN, with_tail=False)
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
    """Remove the text of an element whose font size is too small to be seen, except in inner elements with a larger
    size. Return True if there was text."""
    had_text = False
    walk = iterwalk(element, events=("start",))
    for _, inner in walk:
        if inner is not element:
            had_text |= bool(squeeze(inner.tail))
            inner.tail = None
        if _is_large_enough(inner):
            walk.skip_subtree()
        else:
            had_text |= bool(squeeze(inner.text))
            inner.text = None
    return had_text


def _is_hidden(element: HtmlElement, *, opened: bool = False) -> bool:
    """Return True if the attributes of an element hide it. With `opened`, return True if they still do after a
    control has opened it."""
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
    """The selectors of the elements that style sheets hide: `tag`, `.class`, `tag.class`, `#id` or `tag#id`."""

    hidden: frozenset[str] = frozenset()
    hidden_when_opened: frozenset[str] = frozenset()
    """The selectors of elements that stay hidden even after a control has opened them."""

    def hide(self, element: HtmlElement, *, opened: bool = False) -> bool:
        """Return True if a rule hides an element. With `opened`, return True if it still does after a control has
        opened the element."""
        tag = element.tag
        hidden = self.hidden_when_opened if opened else self.hidden
        if not hidden or tag in _SHOWN_BY_SCRIPTS:
            return False
        if tag in hidden:
            return True
        classes, identifier = element.get("class"), element.get("id")
        names = [f".{name}" for name in classes.split()] if classes else []
        names += [f"#{identifier}"] if identifier else []
        return any(name in hidden or tag + name in hidden for name in names)


def sheet_rules(root: HtmlElement) -> Rules:
    """Return the rules of the style sheets in `root` that hide elements. A rule is cancelled if a later rule with the
    same selector shows the elements."""
    hidden: dict[str, bool | None] = {}
    characters_left = _MAX_CHARACTERS
    for sheet in root.iter("style"):
        text = (sheet.text or "")[:characters_left]
        characters_left -= len(text)
        if (sheet.get("media") or "all").strip().lower() not in ("all", "screen"):
            continue
        for selector, declarations in _rules(text):
            if len(hidden) >= _MAX_RULES:
                break
            _record_rule(selector, declarations, hidden)
    names = [name for name, stays_hidden in hidden.items() if stays_hidden is not None]
    return Rules(frozenset(names), frozenset(name for name in names if hidden[name]))


def hides(style: str, *, opened: bool = False) -> bool:
    """Return True if CSS declarations hide the elements that they apply to.

    With `opened`, ignore declarations that a control cancels when it opens the element.
    """
    if not _SUSPECT.search(style) and not ("background" in (lowercase := style.lower()) and _COLOR.search(lowercase)):
        return False
    declarations = _parse_declarations(style)
    if opened:
        declarations = {name: value for name, value in declarations.items() if name not in _CANCELLED_BY_OPENING}
    if declarations.get("display") == "none" or declarations.get("visibility") in ("hidden", "collapse"):
        return True
    if re.fullmatch(_FAINT, declarations.get("opacity", "")) or declarations.get("content-visibility") == "hidden":
        return True
    if re.search(r"opacity\(\s*0*\.?0\d*%?\s*\)", declarations.get("filter", "")) or re.search(
        _FAR, declarations.get("text-indent", "")
    ):
        return True
    return _is_clipped(declarations) or _is_off_screen(declarations) or _is_one_color(declarations)


def _is_clipped(declarations: dict[str, str]) -> bool:
    """Return True for a box so small that nothing in it is visible."""
    if declarations.get("position") in ("absolute", "fixed"):
        corners = re.fullmatch(r"rect\((.*)\)", declarations.get("clip", ""))
        if corners and re.fullmatch(r"(?:(?:[01](?:px)?|auto)[\s,]*)+", corners[1]) and "0" in corners[1]:
            return True
    if re.search(r"scale[xy]?\(\s*0\s*[,)]", declarations.get("transform", "")):
        return True
    if re.search(r"inset\(\s*(?:50|100)%|circle\(\s*0", declarations.get("clip-path", "")):
        return True
    clips = re.match(r"hidden|clip", declarations.get("overflow", ""))
    sizes = [declarations.get(name, "") for name in ("width", "height", "max-width", "max-height")]
    small = [bool(re.fullmatch(r"1px|" + _ZERO, size)) for size in sizes]
    return bool(clips) and (any(re.fullmatch(_ZERO, size) for size in sizes) or all(small[:2]))


def _is_off_screen(declarations: dict[str, str]) -> bool:
    """Return True for a position off the screen."""
    is_positioned = declarations.get("position") in ("absolute", "fixed", "relative")
    sides = (
        ("left", "right", "top", "bottom", "inset-inline-start") if is_positioned else ("margin-left", "margin-top")
    )
    if any(re.match(_FAR, declarations.get(name, "")) for name in sides):
        return True
    return bool(re.search(rf"translate[xy3d]*\([^)]*(?:{_FAR})", declarations.get("transform", "")))


def _is_one_color(declarations: dict[str, str]) -> bool:
    """Return True for text in the color of its background, or transparent text."""
    # If the background is clipped to the text, it gives the text its color.
    if "text" in (declarations.get("background-clip", ""), declarations.get("-webkit-background-clip", "")):
        return False
    color = _color(declarations.get("color", ""))
    background = _color(declarations.get("background-color") or declarations.get("background", ""))
    return color == "transparent" or (color != "" and color == background)


def _color(text: str) -> str:
    """Return a color in a normalized notation, so that colors can be compared."""
    text = text.replace(" ", "")
    if short := re.fullmatch(r"#([0-9a-f])([0-9a-f])([0-9a-f])", text):
        text = "#" + "".join(digit * 2 for digit in short.groups())
    if numbers := re.fullmatch(r"rgba?\((\d{1,3}),(\d{1,3}),(\d{1,3})(?:,(\d*\.?\d+)%?)?\)", text):
        if numbers[4] and not float(numbers[4]):
            return "transparent"
        text = "#" + "".join(f"{min(int(number), 255):02x}" for number in numbers.groups()[:3])
    return {"white": "#ffffff", "black": "#000000", "#00000000": "transparent"}.get(text, text)


def _parse_declarations(style: str) -> dict[str, str]:
    """Return the declarations, with names and values in lowercase."""
    declarations: dict[str, str] = {}
    important: dict[str, str] = {}
    for declaration in _COMMENTS.sub("", style).lower().split(";"):
        name, colon, value = declaration.partition(":")
        value, important_mark, _ = value.partition("!")
        if colon:
            # Of several declarations of a property the last one counts, but important ones take precedence.
            (important if important_mark else declarations)[name.strip()] = value.strip()[:_MAX_VALUE]
    return declarations | important


def _rules(sheet: str) -> Iterator[tuple[str, str]]:
    """Yield the selectors and the declarations of each rule that applies to screens."""
    selectors = ""
    skipped: list[bool] = []
    parts = _BRACES.split(_COMMENTS.sub("", sheet))
    for text, brace in zip(parts[::2], parts[1::2], strict=False):
        if brace == "{":
            selector = text.rpartition(";")[2].strip()
            is_at_rule = selector.startswith("@")
            skipped.append((is_at_rule and not _SHOWN_MEDIA.fullmatch(selector)) or bool(skipped and skipped[-1]))
            selectors = "" if is_at_rule else selector
        else:
            if selectors and skipped and not skipped[-1]:
                yield selectors, text
            selectors = ""
            if skipped:
                skipped.pop()


def _record_rule(selectors: str, declarations: str, hidden: dict[str, bool | None]) -> None:
    """Record a rule in `hidden` for each of its simple selectors: True if it hides elements even after a control has
    opened them, False if it hides them until then, None if it shows elements that an earlier rule hides."""
    # Most rules have no simple selector, so their declarations need not be parsed.
    simple_selectors = [
        simple for selector in selectors.split(",") if (simple := _SIMPLE.fullmatch(selector.strip())) and simple[0]
    ]
    if not simple_selectors:
        return
    is_hiding = hides(declarations)
    if not is_hiding and not (hidden and _SHOWS.search(declarations)):
        return
    for simple in simple_selectors:
        name = (simple[1] or "").lower() + (simple[2] or "") + (simple[3] or "")
        if is_hiding:
            hidden[name] = hides(declarations, opened=True)
        elif name in hidden:
            hidden[name] = None
