r"""Finds formulas in the notations that pages use: MathML, TeX in a script or in the text, or pictures. A page may
contain the same formula in two notations.

TeX in text is recognized by the delimiters for which scripts of pages look: `$$`, `\(`, `\[`, `\begin`, or a single
`$` if the text after it looks like TeX rather than a price.
"""

import re
from collections.abc import Callable
from itertools import zip_longest
from urllib.parse import unquote

from lxml.etree import Element
from lxml.html import HtmlElement

from ..tree import drop, squeeze

_SCRIPT = "math/tex"
_FORMULA_DRAWING = re.compile(r"(?:^|\s)(?:katex-html|MathJax(?:_\w+)?)(?:\s|$)")
_ACCENTS = frozenset(("accent", "katex-accent"))
_STACKED = _ACCENTS | {"mfrac", "msupsub", "sqrt"}
"""Classes of the parts of a drawing by KaTeX that it stacks."""
_SPACED = frozenset(("mrel", "mbin"))
"""Classes of the signs with spaces around them in a drawing by KaTeX."""
_FORMULA_PICTURE = re.compile(r"(?:^|[\s_-])(?:math|tex|latex)(?:[\s_-]|$)")
_FORMULA_SERVICE = re.compile(
    r"//(?:latex\.codecogs\.com/[\w.]+\?|render\.githubusercontent\.com/render/math\?math=)(?:\\(?:inline|dpi\{\d+\}))*(.+)"
)
"""The address of a picture that a service makes of the TeX in it."""
_TEX = "application/x-tex"
_OPENING = re.compile(
    r"(?<!\\)(?:\\(?P<bracket>[(\[])|\\begin\{(?P<name>\w{1,20}\*?)\})|(?<![\\\w$])\$\$?(?=[^\s$]|\s*\S)"
)
_MAX_TEX = 2_000
"""Maximum number of characters of TeX in text."""
_LIKE_TEX = re.compile(r"[\\^_{]")
_MARKUP = re.compile(r"\][(\[:]|`|<[a-zA-Z/!?][^$]*[\"'>]|&#?\w+;")
"""Text between delimiters that matches this could be Markdown markup, so it is escaped like any other text."""


def split_tex(text: str, escape: Callable[[str], str]) -> str:
    """Escape text, except for its TeX."""
    if "$" not in text and "\\" not in text:
        return escape(text)
    parts: list[str] = []
    written = position = 0
    while opening := _OPENING.search(text, position):
        position = opening.end()
        closing = _closing_sign(opening)
        end = text.find(closing, position, position + _MAX_TEX)
        if end > position and _is_tex(text[position:end], closing, text[end + len(closing) :][:1]):
            position = end + len(closing)
            parts += escape(text[written : opening.start()]), text[opening.start() : position]
            written = position
    return "".join((*parts, escape(text[written:])))


def _closing_sign(opening: re.Match[str]) -> str:
    if opening["name"]:
        return f"\\end{{{opening['name']}}}"
    return {"(": "\\)", "[": "\\]"}.get(opening["bracket"], opening[0])


def _is_tex(content: str, closing: str, after: str) -> bool:
    if _MARKUP.search(content) or "$" in content:
        return False
    return closing != "$" or bool(
        _LIKE_TEX.search(content) and not content[0].isspace() and not content[-1].isspace() and not after.isdigit()
    )


# Elements


def show_formulas(root: HtmlElement) -> None:
    """Replace each script and picture that is a formula with a `math` element whose text is the TeX."""
    for script in list(root.iter("script")):
        if (script.get("type") or "").partition(";")[0].strip() == _SCRIPT and script.text:
            _put_tex(script, script.text)
    for picture in list(root.iter("img")):
        # A picture may have hidden MathML with the same content next to it.
        if picture.get("alt") and _FORMULA_PICTURE.search(picture.get("class") or ""):
            _put_tex(picture, picture.get("alt"))
        elif drawn := _FORMULA_SERVICE.search(unquote(picture.get("src") or "")):
            _put_tex(picture, drawn[1].replace("&space;", " "))
    for drawing in root.xpath("//span[@class='katex-html']"):
        formula = drawing.getparent()
        if formula is not None and formula.find(".//math") is None:
            # KaTeX draws the sign for "not equal" with a character of its own font.
            _put_tex(drawing, re.sub("\ue020 *=", "≠", _write_drawn(drawing)))


def _put_tex(element: HtmlElement, tex: str) -> None:
    parent = element.getparent()
    if parent is None:
        return
    formula = Element("math", alttext=squeeze(tex))
    formula.text, formula.tail = squeeze(tex), element.tail
    parent.replace(element, formula)


def _write_drawn(element: HtmlElement) -> str:
    """Return the TeX of a drawing by KaTeX, which puts a fraction's denominator before its numerator, a subscript
    before a superscript, and a table's columns one after the other."""
    classes = (element.get("class") or "").split()
    if "mtable" in classes and (columns := list(filter(None, map(_drawn_rows, element)))):
        texts = (map(_write_drawn, column) for column in columns)
        return " \\\\ ".join(" & ".join(cells) for cells in zip_longest(*texts, fillvalue=""))
    is_stacked = len(element) > 0 and not _STACKED.isdisjoint(classes)
    # Each part is written only once. Otherwise, the time would double with each level of nesting.
    rows = _drawn_rows(element[-1]) if is_stacked else []
    if "mfrac" in classes and len(rows) == 2:
        below, above = map(_write_drawn, rows)
        has_line = bool(element.xpath(".//span[starts-with(@class, 'frac-line')]"))
        return f"\\frac{{{above}}}{{{below}}}" if has_line else f"{{{above} \\atop {below}}}"
    if "msupsub" in classes and 0 < len(rows) <= 2:
        # A stack has a second class if there is a part below the line.
        signs = "_^" if len(rows) == 2 else "_" if element[-1].get("class") == "vlist-t vlist-t2" else "^"
        return "".join(sign + _braced(_write_drawn(row)) for sign, row in zip(signs, rows, strict=False))
    if not _ACCENTS.isdisjoint(classes) and len(rows) == 2:
        below, above = map(_write_drawn, rows)
        return f"\\overset{{{above}}}{{{below}}}"
    if "sqrt" in classes and len(rows) == 1:
        index = f"[{_write_drawn(element[0])}]" if len(element) == 2 else ""
        return f"\\sqrt{index}{{{_write_drawn(rows[0])}}}"
    text = (element.text or "").strip("\u200b") + "".join(
        _write_drawn(child) + (child.tail or "") for child in element
    )
    return f" {text} " if _SPACED.intersection(classes) else text


def _drawn_rows(element: HtmlElement) -> list[HtmlElement]:
    """Return the parts with text of the first stack in an element, lowest first."""
    rows = next((inner for inner in element.iter("span") if inner.get("class") == "vlist"), ())
    return [row for row in rows if any(text.strip("\u200b") for text in row.itertext())]


def drop_drawn_formulas(root: HtmlElement) -> None:
    """Remove drawings of formulas that the page also contains as MathML."""
    if next(root.iter("math"), None) is None:
        return
    for element in list(root.iter("span", "div", "mjx-math")):
        is_drawing = element.tag == "mjx-math" or _FORMULA_DRAWING.search(element.get("class") or "")
        if is_drawing and next(element.iter("math"), None) is None:
            parent = element.getparent()
            if parent is not None and next(parent.iter("math"), None) is not None:
                drop(element)


def tex_of(formula: HtmlElement) -> str:
    """Return the TeX of a `math` element: the page's own, or else derived from the structure of the element."""
    for annotation in formula.iter("annotation"):
        if annotation.get("encoding") == _TEX and (tex := squeeze(annotation.text)):
            return tex
    return squeeze(formula.get("alttext")) or squeeze(_write(formula))


def _write(element: HtmlElement) -> str:
    if element.tag in ("annotation", "annotation-xml"):
        return ""
    parts = [_write(child) for child in element]
    if element.tag in _STRUCTURES and len(parts) >= 2:
        return _STRUCTURES[element.tag](parts)
    if element.tag == "mtable":
        return " \\\\ ".join(parts)
    if element.tag in ("mtr", "mlabeledtr"):
        return " & ".join(parts)
    if element.tag == "mfenced":
        separator = f"{element.get('separators', ',')[:1]} "
        return f"{element.get('open', '(')}{separator.join(parts)}{element.get('close', ')')}"
    content = " ".join(filter(None, (squeeze(element.text), *parts)))
    return f"\\sqrt{{{content}}}" if element.tag == "msqrt" else content


def _braced(text: str) -> str:
    return text if len(text) == 1 else f"{{{text}}}"


_STRUCTURES: dict[str, Callable[[list[str]], str]] = {
    "mfrac": lambda parts: f"\\frac{{{parts[0]}}}{{{parts[1]}}}",
    "mroot": lambda parts: f"\\sqrt[{parts[1]}]{{{parts[0]}}}",
    "msup": lambda parts: f"{parts[0]}^{_braced(parts[1])}",
    "mover": lambda parts: f"{parts[0]}^{_braced(parts[1])}",
    **dict.fromkeys(
        ("msub", "munder", "msubsup", "munderover"),
        lambda parts: f"{parts[0]}_{_braced(parts[1])}" + "".join(f"^{_braced(part)}" for part in parts[2:3]),
    ),
}
