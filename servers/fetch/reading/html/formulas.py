"""Formulas, which pages write as MathML, as TeX in a script, or as pictures, and some of them twice."""

import re
from collections.abc import Callable

from lxml.etree import Element
from lxml.html import HtmlElement

from servers.fetch.reading.html.tree import drop, squeezed

__all__ = ["drop_drawn_formulas", "show_formulas", "tex_of"]

_SCRIPT = "math/tex"
_DRAWN = re.compile(r"(?:^|\s)(?:katex-html|MathJax(?:_\w+)?)(?:\s|$)")
_PICTURED = re.compile(r"(?:^|[\s_-])(?:math|tex|latex)(?:[\s_-]|$)")
_TEX = "application/x-tex"


def show_formulas(root: HtmlElement) -> None:
    """Put an element `math` in place of each script and each picture that is one, with its TeX as text."""
    for script in list(root.iter("script")):
        if (script.get("type") or "").partition(";")[0].strip() == _SCRIPT and script.text:
            _put_tex(script, script.text)
    for picture in list(root.iter("img")):
        # A picture of MathML that stands beside it, hidden, says the same.
        if picture.get("alt") and _PICTURED.search(picture.get("class") or ""):
            _put_tex(picture, picture.get("alt"))


def _put_tex(element: HtmlElement, tex: str) -> None:
    parent = element.getparent()
    if parent is None:
        return
    formula = Element("math", alttext=squeezed(tex))
    formula.text, formula.tail = squeezed(tex), element.tail
    parent.replace(element, formula)


def drop_drawn_formulas(root: HtmlElement) -> None:
    """Take out of a page what a program has drawn of formulas that stand beside it."""
    if next(root.iter("math"), None) is None:
        return
    for element in list(root.iter("span", "div", "mjx-math")):
        drawn = element.tag == "mjx-math" or _DRAWN.search(element.get("class") or "")
        if drawn and next(element.iter("math"), None) is None:
            parent = element.getparent()
            if parent is not None and next(parent.iter("math"), None) is not None:
                drop(element)


def tex_of(formula: HtmlElement) -> str:
    """The TeX of an element `math`: as the page gives it, or as its structure says."""
    for annotation in formula.iter("annotation"):
        if annotation.get("encoding") == _TEX and (tex := squeezed(annotation.text)):
            return tex
    return squeezed(formula.get("alttext")) or squeezed(_written(formula))


def _written(element: HtmlElement) -> str:
    if element.tag in ("annotation", "annotation-xml"):
        return ""
    parts = [_written(child) for child in element]
    if element.tag in _STRUCTURES and len(parts) >= 2:
        return _STRUCTURES[element.tag](parts)
    if element.tag == "mtable":
        return " \\\\ ".join(parts)
    if element.tag in ("mtr", "mlabeledtr"):
        return " & ".join(parts)
    inside = " ".join(filter(None, (squeezed(element.text), *parts)))
    return f"\\sqrt{{{inside}}}" if element.tag == "msqrt" else inside


def _group(text: str) -> str:
    return text if len(text) == 1 else f"{{{text}}}"


def _both(parts: list[str]) -> str:
    return f"{parts[0]}_{_group(parts[1])}" + "".join(f"^{_group(part)}" for part in parts[2:3])


_STRUCTURES: dict[str, Callable[[list[str]], str]] = {
    "mfrac": lambda parts: f"\\frac{{{parts[0]}}}{{{parts[1]}}}",
    "mroot": lambda parts: f"\\sqrt[{parts[1]}]{{{parts[0]}}}",
    "msup": lambda parts: f"{parts[0]}^{_group(parts[1])}",
    "mover": lambda parts: f"{parts[0]}^{_group(parts[1])}",
    **dict.fromkeys(("msub", "munder", "msubsup", "munderover"), _both),
}
