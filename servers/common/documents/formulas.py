"""Converts formulas of Office (OMML; ECMA-376, part 1, section 22.1) to TeX."""

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
    """Return a formula as TeX, on one line. Elements that are not in `_STRUCTURES` are replaced by their contents."""
    return " ".join(_children_tex(formula).split())


def _children_tex(element: Element | None) -> str:
    parts: list[str] = []
    for child in element if element is not None else ():
        name = child.tag.removeprefix(_M) if isinstance(child.tag, str) else ""
        if name in _STRUCTURES:
            parts.append(_STRUCTURES[name](child))
        elif name == "r":
            parts += (text.text or "" for text in child.iter(f"{_M}t"))
        elif not name.endswith("Pr"):
            parts.append(_children_tex(child))
    return "".join(parts)


def _child_tex(element: Element, name: str) -> str:
    return _children_tex(element.find(_M + name))


def _braced(element: Element, name: str) -> str:
    text = _child_tex(element, name)
    return text if len(text) == 1 else f"{{{text}}}"


def _value(element: Element, path: str, default: str) -> str:
    match = element.find("/".join(_M + name for name in path.split("/")))
    return default if match is None else match.get(f"{_M}val") or ""


def _radical(element: Element) -> str:
    degree = _child_tex(element, "deg")
    return f"\\sqrt[{degree}]{{{_child_tex(element, 'e')}}}" if degree else f"\\sqrt{{{_child_tex(element, 'e')}}}"


def _large_operator(element: Element) -> str:
    sign = _value(element, "naryPr/chr", "∫")
    limits = "".join(
        f"{mark}{_braced(element, name)}" for mark, name in (("_", "sub"), ("^", "sup")) if _child_tex(element, name)
    )
    return f"{_OPERATORS.get(sign, sign)}{limits} {_child_tex(element, 'e')}"


def _delimiters(element: Element) -> str:
    opening, closing = _value(element, "dPr/begChr", "("), _value(element, "dPr/endChr", ")")
    separator = _value(element, "dPr/sepChr", "|")
    escaped = {"{": "\\{", "}": "\\}"}
    content = separator.join(_children_tex(part) for part in element.findall(f"{_M}e"))
    return f"{escaped.get(opening, opening)}{content}{escaped.get(closing, closing)}"


def _function(element: Element) -> str:
    name = _child_tex(element, "fName").strip()
    sign = "\\" if name in _FUNCTIONS else ""
    return f"{sign}{name} {_child_tex(element, 'e')}"


def _matrix(element: Element) -> str:
    rows = (" & ".join(map(_children_tex, row.findall(f"{_M}e"))) for row in element.findall(f"{_M}mr"))
    return f"\\begin{{matrix}}{_NEXT_ROW.join(rows)}\\end{{matrix}}"


_STRUCTURES: dict[str, Callable[[Element], str]] = {
    "f": lambda element: f"\\frac{{{_child_tex(element, 'num')}}}{{{_child_tex(element, 'den')}}}",
    "rad": _radical,
    "nary": _large_operator,
    "d": _delimiters,
    "func": _function,
    "m": _matrix,
    "acc": lambda element: f"\\{_ACCENTS.get(_value(element, 'accPr/chr', ''), 'hat')}{{{_child_tex(element, 'e')}}}",
    "bar": lambda element: f"\\overline{{{_child_tex(element, 'e')}}}",
    "eqArr": lambda element: _NEXT_ROW.join(map(_children_tex, element.findall(f"{_M}e"))),
    "sSup": lambda element: f"{_braced(element, 'e')}^{_braced(element, 'sup')}",
    "sSub": lambda element: f"{_braced(element, 'e')}_{_braced(element, 'sub')}",
    "sSubSup": lambda element: f"{_braced(element, 'e')}_{_braced(element, 'sub')}^{_braced(element, 'sup')}",
    "limLow": lambda element: f"{_braced(element, 'e')}_{_braced(element, 'lim')}",
    "limUpp": lambda element: f"{_braced(element, 'e')}^{_braced(element, 'lim')}",
}
