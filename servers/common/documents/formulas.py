"""Formulas of Office (OMML; ECMA-376, part 1, section 22.1) as TeX."""

from collections.abc import Callable

from lxml.etree import _Element as Element

_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_OPERATORS = {
    "∑": "\\sum",
    "∏": "\\prod",
    "∫": "\\int",
    "∬": "\\iint",
    "∮": "\\oint",
    "⋃": "\\bigcup",
    "⋂": "\\bigcap",
}
_ACCENTS = {
    "\u0302": "hat",
    "\u0303": "tilde",
    "\u0304": "bar",
    "\u0305": "overline",
    "\u0307": "dot",
    "\u0308": "ddot",
    "\u20d7": "vec",
}
_NEXT_ROW = " \\\\ "
_FUNCTIONS = frozenset(
    ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "log", "ln", "lim", "min", "max", "exp", "det")
)


def tex_of(formula: Element) -> str:
    """Return a formula as TeX, on one line. The contents of an unknown element are written in order."""
    return " ".join(_inside(formula).split())


def _inside(element: Element | None) -> str:
    parts: list[str] = []
    for child in element if element is not None else ():
        name = child.tag.removeprefix(_M) if isinstance(child.tag, str) else ""
        if name in _STRUCTURES:
            parts.append(_STRUCTURES[name](child))
        elif name == "r":
            parts += (text.text or "" for text in child.iter(f"{_M}t"))
        elif not name.endswith("Pr"):
            parts.append(_inside(child))
    return "".join(parts)


def _part(element: Element, name: str) -> str:
    return _inside(element.find(_M + name))


def _group(element: Element, name: str) -> str:
    text = _part(element, name)
    return text if len(text) == 1 else f"{{{text}}}"


def _value(element: Element, path: str, otherwise: str) -> str:
    match = element.find("/".join(_M + name for name in path.split("/")))
    return otherwise if match is None else match.get(f"{_M}val") or ""


def _root(element: Element) -> str:
    degree = _part(element, "deg")
    return f"\\sqrt[{degree}]{{{_part(element, 'e')}}}" if degree else f"\\sqrt{{{_part(element, 'e')}}}"


def _large_operator(element: Element) -> str:
    sign = _value(element, "naryPr/chr", "∫")
    limits = "".join(
        f"{mark}{_group(element, name)}" for mark, name in (("_", "sub"), ("^", "sup")) if _part(element, name)
    )
    return f"{_OPERATORS.get(sign, sign)}{limits} {_part(element, 'e')}"


def _delimiters(element: Element) -> str:
    opening, closing = _value(element, "dPr/begChr", "("), _value(element, "dPr/endChr", ")")
    between = _value(element, "dPr/sepChr", "|")
    escaped = {"{": "\\{", "}": "\\}"}
    inside = between.join(_inside(part) for part in element.findall(f"{_M}e"))
    return f"{escaped.get(opening, opening)}{inside}{escaped.get(closing, closing)}"


def _function(element: Element) -> str:
    name = _part(element, "fName").strip()
    sign = "\\" if name in _FUNCTIONS else ""
    return f"{sign}{name} {_part(element, 'e')}"


def _matrix(element: Element) -> str:
    rows = (" & ".join(map(_inside, row.findall(f"{_M}e"))) for row in element.findall(f"{_M}mr"))
    return f"\\begin{{matrix}}{_NEXT_ROW.join(rows)}\\end{{matrix}}"


_STRUCTURES: dict[str, Callable[[Element], str]] = {
    "f": lambda element: f"\\frac{{{_part(element, 'num')}}}{{{_part(element, 'den')}}}",
    "rad": _root,
    "nary": _large_operator,
    "d": _delimiters,
    "func": _function,
    "m": _matrix,
    "acc": lambda element: f"\\{_ACCENTS.get(_value(element, 'accPr/chr', ''), 'hat')}{{{_part(element, 'e')}}}",
    "bar": lambda element: f"\\overline{{{_part(element, 'e')}}}",
    "eqArr": lambda element: _NEXT_ROW.join(map(_inside, element.findall(f"{_M}e"))),
    "sSup": lambda element: f"{_group(element, 'e')}^{_group(element, 'sup')}",
    "sSub": lambda element: f"{_group(element, 'e')}_{_group(element, 'sub')}",
    "sSubSup": lambda element: f"{_group(element, 'e')}_{_group(element, 'sub')}^{_group(element, 'sup')}",
    "limLow": lambda element: f"{_group(element, 'e')}_{_group(element, 'lim')}",
    "limUpp": lambda element: f"{_group(element, 'e')}^{_group(element, 'lim')}",
}
