"""What an eye would not see, taken out of a page before it is read.

A page may say to a program what it does not show to a person, and so instruct it. What was taken is counted; what no
page shows, such as scripts, is not. What a control of the page opens is shown (`panels`), and what it embeds is
linked (`embedded`).

Of styles, those of an element count, and the simple rules of the page's own sheets, which name one tag, class or id.
Only what needs no layout is judged, and a sheet from elsewhere is not loaded. A rule for another medium than the
screen, or under a condition, does not count. A parser of CSS, tinycss2, was tried: of 430 KB it takes 346 ms where
this takes 7, and 75 microseconds instead of 13 of a style.
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
"""What no page shows: scripts, sheets, templates, and what stands in for them."""
_MOST_CHARACTERS = 500_000
"""Of all sheets of a page."""
_LONGEST_VALUE = 200
_MOST_RULES = 5_000
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
"""What stands in any style that hides, so that most need not be read."""
_COLOUR = re.compile(r"(?<!-)color\s*:")
_TAKEN_BACK = frozenset(("display", "visibility", "content-visibility", "opacity", "height", "max-height"))
"""What hides a panel until its control has opened it."""
_NOT_HIDING = frozenset(("html", "body", "main", "article"))
"""Elements that a rule of a sheet hides only until a script has run."""


def remove_hidden(root: HtmlElement) -> tuple[int, int]:
    """Take out what attributes and styles hide, and invisible characters; open panels, and link what is embedded.

    Returns how many elements with text and how many characters were taken out.
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
    if any(_size(element) is False for element in root.xpath("//*[@style]")):
        elements += sum(_silenced(element) for element in outermost(root, lambda element: _size(element) is False))
    return elements, _remove_invisible(root)


def _size(element: HtmlElement) -> bool | None:
    """Whether the style of an element makes its text large enough to be seen; None where it says nothing of that."""
    style = element.get("style") or ""
    size = _declared(style).get("font-size") if "font" in style.lower() else None
    return None if size is None else not re.fullmatch(_TINY, size)


def _silenced(element: HtmlElement) -> bool:
    """Take out the text of an element whose letters have no size, but for elements within that give them one."""
    had = False
    walk = iterwalk(element, events=("start",))
    for _, inner in walk:
        if inner is not element:
            had |= bool(squeeze(inner.tail))
            inner.tail = None
        if _size(inner):
            walk.skip_subtree()
        else:
            had |= bool(squeeze(inner.text))
            inner.text = None
    return had


def _is_hidden(element: HtmlElement, *, opened: bool = False) -> bool:
    """Whether an element hides itself; also where a control has `opened` it."""
    if element.tag in ("html", "body", "head"):
        return False
    if element.get("hidden") is not None and not opened:
        return True
    style = element.get("style")
    return bool(style) and hides(style, opened=opened)


def _remove_invisible(root: HtmlElement) -> int:
    """Take what is not seen out of every text and attribute of a tree; how many characters that were."""
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
                seen, count = strip_invisible(value)
                element.set(name, seen)
                removed += count
    return removed


# Which styles hide what they apply to


class Rules(NamedTuple):
    """What sheets hide, by tag (as `tag`), class (`.name`, `tag.name`) and id (`#name`)."""

    hidden: frozenset[str] = frozenset()
    lasting: frozenset[str] = frozenset()
    """Those of them that hide also what a control has opened."""

    def hide(self, element: HtmlElement, *, opened: bool = False) -> bool:
        """Whether a rule hides an element; also where a control has `opened` it."""
        tag = element.tag
        hidden = self.lasting if opened else self.hidden
        if not hidden or tag in _NOT_HIDING:
            return False
        if tag in hidden:
            return True
        classes, own = element.get("class"), element.get("id")
        names = [f".{name}" for name in classes.split()] if classes else []
        names += [f"#{own}"] if own else []
        return any(name in hidden or tag + name in hidden for name in names)


def sheet_rules(root: HtmlElement) -> Rules:
    """The rules of the sheets within an element that hide; a later rule that shows the same again takes one back."""
    hidden: dict[str, bool | None] = {}
    left = _MOST_CHARACTERS
    for sheet in root.iter("style"):
        text = (sheet.text or "")[:left]
        left -= len(text)
        if (sheet.get("media") or "all").strip().lower() not in ("all", "screen"):
            continue
        for selector, declarations in _rules(text):
            if len(hidden) >= _MOST_RULES:
                break
            _note(selector, declarations, hidden)
    names = [name for name, lasts in hidden.items() if lasts is not None]
    return Rules(frozenset(names), frozenset(name for name in names if hidden[name]))


def hides(style: str, *, opened: bool = False) -> bool:
    """Whether declarations of CSS hide all that they apply to; without those that a control which has `opened` it
    takes back."""
    if not _SUSPECT.search(style) and not ("background" in (low := style.lower()) and _COLOUR.search(low)):
        return False
    said = _declared(style)
    if opened:
        said = {name: value for name, value in said.items() if name not in _TAKEN_BACK}
    if said.get("display") == "none" or said.get("visibility") in ("hidden", "collapse"):
        return True
    if re.fullmatch(_FAINT, said.get("opacity", "")) or said.get("content-visibility") == "hidden":
        return True
    if re.search(r"opacity\(\s*0*\.?0\d*%?\s*\)", said.get("filter", "")) or re.search(
        _FAR, said.get("text-indent", "")
    ):
        return True
    return _is_cut(said) or _is_away(said) or _is_one_colour(said)


def _is_cut(said: dict[str, str]) -> bool:
    """A box so small that nothing in it is seen."""
    if said.get("position") in ("absolute", "fixed"):
        corners = re.fullmatch(r"rect\((.*)\)", said.get("clip", ""))
        if corners and re.fullmatch(r"(?:(?:[01](?:px)?|auto)[\s,]*)+", corners[1]) and "0" in corners[1]:
            return True
    if re.search(r"scale[xy]?\(\s*0\s*[,)]", said.get("transform", "")):
        return True
    if re.search(r"inset\(\s*(?:50|100)%|circle\(\s*0", said.get("clip-path", "")):
        return True
    cut = re.match(r"hidden|clip", said.get("overflow", ""))
    sizes = [said.get(name, "") for name in ("width", "height", "max-width", "max-height")]
    small = [bool(re.fullmatch(r"1px|" + _ZERO, size)) for size in sizes]
    return bool(cut) and (any(re.fullmatch(_ZERO, size) for size in sizes) or all(small[:2]))


def _is_away(said: dict[str, str]) -> bool:
    """A place that the screen does not reach."""
    placed = said.get("position") in ("absolute", "fixed", "relative")
    sides = ("left", "right", "top", "bottom", "inset-inline-start") if placed else ("margin-left", "margin-top")
    if any(re.match(_FAR, said.get(name, "")) for name in sides):
        return True
    return bool(re.search(rf"translate[xy3d]*\([^)]*(?:{_FAR})", said.get("transform", "")))


def _is_one_colour(said: dict[str, str]) -> bool:
    """Text in the colour of what is behind it, or in none; a picture cut in the shape of the text is seen."""
    if "text" in (said.get("background-clip", ""), said.get("-webkit-background-clip", "")):
        return False
    colour = _colour(said.get("color", ""))
    behind = _colour(said.get("background-color") or said.get("background", ""))
    return colour == "transparent" or (colour != "" and colour == behind)


def _colour(text: str) -> str:
    """A colour in one spelling, where it has several that are in use."""
    text = text.replace(" ", "")
    if short := re.fullmatch(r"#([0-9a-f])([0-9a-f])([0-9a-f])", text):
        text = "#" + "".join(digit * 2 for digit in short.groups())
    if numbers := re.fullmatch(r"rgba?\((\d{1,3}),(\d{1,3}),(\d{1,3})(?:,([\d.]+%?))?\)", text):
        if numbers[4] and not float(numbers[4].rstrip("%").strip(".") or 0):
            return "transparent"
        text = "#" + "".join(f"{min(int(number), 255):02x}" for number in numbers.groups()[:3])
    return {"white": "#ffffff", "black": "#000000", "#00000000": "transparent"}.get(text, text)


def _declared(style: str) -> dict[str, str]:
    """The declarations, names and values in lower case; the last of a name counts, an important one before all."""
    said: dict[str, str] = {}
    important: dict[str, str] = {}
    for declaration in _COMMENTS.sub("", style).lower().split(";"):
        name, colon, value = declaration.partition(":")
        value, bang, _ = value.partition("!")
        if colon:
            (important if bang else said)[name.strip()] = value.strip()[:_LONGEST_VALUE]
    return said | important


def _rules(sheet: str) -> Iterator[tuple[str, str]]:
    """Selectors and declarations that count on a screen."""
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


def _note(selectors: str, declarations: str, hidden: dict[str, bool | None]) -> None:
    """Note for each simple selector whether its rule hides: also what was opened (True), or until then (False)."""
    # Most rules have none that is simple, and their declarations need not be read.
    found = [simple for one in selectors.split(",") if (simple := _SIMPLE.fullmatch(one.strip())) and simple[0]]
    if not found:
        return
    hiding = hides(declarations)
    if not hiding and not (hidden and _SHOWS.search(declarations)):
        return
    for simple in found:
        name = (simple[1] or "").lower() + (simple[2] or "") + (simple[3] or "")
        if hiding:
            hidden[name] = hides(declarations, opened=True)
        elif name in hidden:
            hidden[name] = None
