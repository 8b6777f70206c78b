"""What keeps its form: code, tables, and formulas.

Pages write formulas as MathML, as TeX in a script, or as pictures, and some of them twice.
"""

import re
from collections.abc import Callable, Iterator
from itertools import islice

from lxml.etree import Element
from lxml.html import HtmlElement

from servers.fetch.read.html.tree import HEADINGS, drop, length, squeeze

_NAMED = re.compile(
    r"(?:^|\s)(?:language|lang|highlight-source|highlight-text|highlight|brush)[-:]\s?([\w+#.-]{1,30})(?![\w-])"
)
_NAMED_AFTER = re.compile(r"(?:^|\s)(?:sourceCode|highlight|code)\s+(\w{1,20})(?:\s|$)")
_NO_LANGUAGE = frozenset(
    ("none", "default", "text", "plain", "plaintext", "nohighlight", "notranslate", "wrapper", "source")
)
_GUTTERS = frozenset(
    ("gutter", "linenos", "lineno", "linenodiv", "line-numbers-rows", "line-number", "linenumber", "hljs-ln-numbers")
)
_LEVELS = 3
"""How far around a block its language may be named."""
_MOST_COLUMNS = 200
_LONGEST_CELL = 1_000
"""Characters that a cell of a table of data may have."""
_NOT_IN_CELLS = ("table", "pre", "form", *HEADINGS[:3])
_SCRIPT = "math/tex"
_DRAWN = re.compile(r"(?:^|\s)(?:katex-html|MathJax(?:_\w+)?)(?:\s|$)")
_PICTURED = re.compile(r"(?:^|[\s_-])(?:math|tex|latex)(?:[\s_-]|$)")
_TEX = "application/x-tex"


# Code


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
        classes = one.get("class") or ""
        matches = (pattern.search(classes) for pattern in (_NAMED, _NAMED_AFTER))
        named = one.get("data-lang") or one.get("data-language") or next((found[1] for found in matches if found), "")
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


# Tables


def is_data(table: HtmlElement) -> bool:
    """Whether a table holds data: more than one column, and short cells without headings or tables in them."""
    if table.get("role") in ("presentation", "none") or next(table.iterdescendants(*_NOT_IN_CELLS), None) is not None:
        return False
    rows = list(_rows(table))
    if len(rows) < 2 and not any(cell.tag == "th" for row in rows for cell in row):
        return False
    return max((len(_cells(row)) for row in rows), default=0) > 1 and all(
        length(cell) <= _LONGEST_CELL for row in rows for cell in _cells(row)
    )


def write_table(table: HtmlElement, write_cell: Callable[[HtmlElement], str], *, plain: bool) -> str:
    """The rows of a table, each a line. Cells that reach over several rows or columns leave the others empty."""
    lines = list(_lines(table, write_cell))
    while lines and not any(lines[0]):
        del lines[0]
    if plain:
        return "\n".join(" | ".join(filter(None, line)) for line in lines if any(line))
    columns = max(map(len, lines), default=0)
    head = lines.pop(0) if lines and _has_head(table) else [""] * columns
    head += [""] * (columns - len(head))
    written = [head, ["---"] * columns, *(line for line in lines if any(line))]
    return "\n".join(f"| {' | '.join(line)} |" for line in written)


def _rows(table: HtmlElement) -> Iterator[HtmlElement]:
    for child in table:
        if child.tag == "tr":
            yield child
        elif child.tag in ("thead", "tbody", "tfoot"):
            yield from (row for row in child if row.tag == "tr")


def _cells(row: HtmlElement) -> list[HtmlElement]:
    return [cell for cell in row if cell.tag in ("td", "th")]


def _lines(table: HtmlElement, write_cell: Callable[[HtmlElement], str]) -> Iterator[list[str]]:
    reaching: dict[int, int] = {}
    for row in _rows(table):
        line: list[str] = []
        taken, reaching = reaching, {column: rows - 1 for column, rows in reaching.items() if rows > 1}
        for cell in islice(_cells(row), _MOST_COLUMNS):
            while len(line) in taken and len(line) < _MOST_COLUMNS:
                line.append("")
            rows = _span(cell, "rowspan")
            columns = min(_span(cell, "colspan"), max(_MOST_COLUMNS - len(line), 1))
            if rows > 1:
                reaching.update({len(line) + at: rows - 1 for at in range(columns)})
            line += [write_cell(cell), *[""] * (columns - 1)]
        yield line


def _has_head(table: HtmlElement) -> bool:
    if table.find("thead") is not None:
        return True
    first = next(_rows(table), None)
    return first is not None and sum(cell.tag == "th" for cell in _cells(first)) > 1


def _span(cell: HtmlElement, name: str) -> int:
    text = (cell.get(name) or "").strip()
    return min(int(text), _MOST_COLUMNS) if text.isdecimal() and len(text) < 6 else 1


# Formulas


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
    formula = Element("math", alttext=squeeze(tex))
    formula.text, formula.tail = squeeze(tex), element.tail
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
        if annotation.get("encoding") == _TEX and (tex := squeeze(annotation.text)):
            return tex
    return squeeze(formula.get("alttext")) or squeeze(_written(formula))


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
    inside = " ".join(filter(None, (squeeze(element.text), *parts)))
    return f"\\sqrt{{{inside}}}" if element.tag == "msqrt" else inside


def _group(text: str) -> str:
    return text if len(text) == 1 else f"{{{text}}}"


_STRUCTURES: dict[str, Callable[[list[str]], str]] = {
    "mfrac": lambda parts: f"\\frac{{{parts[0]}}}{{{parts[1]}}}",
    "mroot": lambda parts: f"\\sqrt[{parts[1]}]{{{parts[0]}}}",
    "msup": lambda parts: f"{parts[0]}^{_group(parts[1])}",
    "mover": lambda parts: f"{parts[0]}^{_group(parts[1])}",
    **dict.fromkeys(
        ("msub", "munder", "msubsup", "munderover"),
        lambda parts: f"{parts[0]}_{_group(parts[1])}" + "".join(f"^{_group(part)}" for part in parts[2:3]),
    ),
}
