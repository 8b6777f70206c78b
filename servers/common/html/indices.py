"""Writes exponents and subscripts in a line of text with a sign: `2^n`, `e^(-x)`, `log_2 8`, `x_i^2`.

Superscripts that are parts of words get no sign: ordinals (1st, XIXe, 1er), titles (Mme), trademarks (TM), and text
without a letter or number before it, which is small print. The numbers in chemical formulas get none either: H2O,
C6H12O6. A single letter counts as an element only if another element follows or precedes it, or its gas is listed in
`_GASES`, so that a P with the subscript 2 becomes P_2.
"""

import re

_WITHOUT_PARENTHESES = re.compile(
    r"[-+\u2212\u2013\u00b1]?\d+(?:[.,]\d+)?|[^\W\d_]+|[-+\u2212*\u2217\u2032\u2033\u221e]"
)
"""Text that needs no parentheses: a number, letters, or a sign."""
_BASE = re.compile(r"([^\W_]+|[)\]}|])[*_`~]*$")
_ORDINALS = re.compile(
    r"(?:(?:\d|\b[IVXLCDM]+|\b[a-z]) (?:st|nd|rd|th)|(?:\d|\b[IVXLCDM]+)"
    r" (?:er?|[eè]re|re|i?[eè]me|nde?|[eè]?re?s|[eè]mes|es|os|as)|(?<![\d.,])[1-9] [ao])$"
)
_TITLES = re.compile(
    r"(?:M (?:me|mes|lle|lles|gr|rs?)|D (?:re?|rs|ra)|S (?:te?|ts)|P (?:r|rs)|[VM] (?:ve|e|es)|[nN] (?:os?)|C (?:ie)"
    r"|B (?:d)|Ch (?:er)|St (?:e)|Mc (?:\w+))"
)
_MARKS = frozenset(
    ("TM", "SM", "MD", "MC", "R", "\u2122", "\u2120", "\u00ae", "\u00a9", "\u00b0", "\u00ba", "\u00aa")
)
_ELEMENTS = (
    "A[cglmrstu]|B[aehikr]?|C[adeflmnorsu]?|D[bsy]|E[rsu]|F[elmr]?|G[ade]|H[efgos]?|I[nr]?|K[r]?|L[airuv]|M[cdgnot]"
    "|N[abdehiop]?|O[gs]?|P[abdmortu]?|R[abefghnu]|S[bcegimnr]?|T[abcehilms]|U|V|W|Xe|Y[b]?|Z[nr]"
)
_FORMULA = re.compile(rf"(?:[(\[]?(?:{_ELEMENTS})\d*[)\]]?\d*)+")
_ELEMENT = re.compile(_ELEMENTS)
_GASES = frozenset(("H2", "N2", "O2", "O3", "F2", "Cl2", "Br2", "I2", "S8", "P4"))
_FORMULA_END = re.compile(r"[A-Za-z\d()\[\]]+$")
_ATOM_COUNT = re.compile(r"[1-9]\d{0,2}")


def write_script(sign: str, words: str, before: str, after: str) -> str:
    """Return superscript text (sign `^`) or subscript text (sign `_`) as plain text. The result depends on the text
    `before` and `after` it in its line."""
    script_text = words.strip()
    if not script_text:
        return words
    if sign == "_" and _is_formula(script_text, before, after):
        return script_text
    base = _BASE.search(before)
    if base is None:
        # The mass number of an isotope precedes the element.
        is_isotope = (
            sign == "^" and re.fullmatch(r"\d+", script_text) and (after[:1].isalpha() or not (before or after))
        )
        return f"^{script_text}" if is_isotope else words
    if _is_word(sign, script_text, base[1], before):
        return words
    script = sign + (
        script_text if _WITHOUT_PARENTHESES.fullmatch(script_text.replace("\\", "")) else f"({script_text})"
    )
    needs_space = after[:1].isalnum() and not script.endswith(")")
    return f"{script} " if needs_space else script


def _is_word(sign: str, script_text: str, base: str, before: str) -> bool:
    """Return True if superscript or subscript text is part of a word rather than an exponent or an index."""
    if (
        script_text in _MARKS
        or script_text.startswith(("[", "\\[", "![", "("))
        or re.search(r"[^\W\d]{2,}\s+[^\W\d]{2,}", script_text)
    ):
        return True
    if sign == "_":
        return False
    joined = f"{before.rstrip('*_`~')[-20:]} {script_text}"
    if _ORDINALS.search(joined) or _TITLES.fullmatch(f"{base} {script_text}"):
        return True
    return script_text.isalpha() and len(script_text) > 2 and base.isalpha() and len(base) > 2


def _is_formula(script_text: str, before: str, after: str) -> bool:
    """Return True if a subscript is the number of atoms in a chemical formula."""
    run = _FORMULA_END.search(before)
    if run is None or not _ATOM_COUNT.fullmatch(script_text):
        return False
    formula = run[0] + script_text
    if formula in _GASES:
        return True
    if not _FORMULA.fullmatch(formula) or script_text == "1":
        return False
    next_element = re.match(r"[A-Z][a-z]?|[(\[]", after)
    return len(_ELEMENT.findall(run[0])) > 1 or bool(
        next_element and (next_element[0] in "([" or _FORMULA.match(after))
    )
