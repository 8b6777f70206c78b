"""Pages of the kinds that the article benchmark lacks, written for this, with their main text marked.

What a person would call the main text stands in elements with `data-gold`; within those, `data-gold="no"` marks what
is no part of it: links to a heading, buttons, the second of two forms of one formula. The headline is in no gold, as
in the article benchmark. Each page has the structure that one of the common programs gives it, and invented words.
"""

import re
from functools import cache
from pathlib import Path

from lxml.html import HtmlElement, HTMLParser, document_fromstring

__all__ = ["characters_and_words", "gold_of", "page_names", "page_of", "with_captions"]

FOLDER = Path(__file__).resolve().parent / "fetch" / "pages"

_MARK = re.compile(rb' data-gold(?:="no")?(?=[ >])')
_IN_LINES = frozenset(
    re.findall(
        r"[\w-]+",
        """
    a abbr annotation b bdi cite clipboard-copy code data dfn em font i img ins kbd mark output q ruby s samp
    semantics small span strong sub sup time u var
""",
    )
)
"""What does not end a word. The parts of a formula do: its text runs them together."""
_PICTURE = re.compile(r'!\[(?:\\.|[^\]\\])*\]\(\S*? "([^"]*)"\)')
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_]+")
_NO_TEXT = frozenset(("script", "style", "template", "noscript", "select", "textarea", "rp"))


@cache
def page_names() -> tuple[str, ...]:
    """All pages, as KIND-PROGRAM-LANGUAGE."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.html")))


def page_of(name: str) -> bytes:
    """The page without its marks."""
    return _MARK.sub(b"", (FOLDER / f"{name}.html").read_bytes())


def gold_of(name: str) -> str:
    """The main text of the page, as it is marked."""
    parser = HTMLParser(encoding="utf-8", remove_comments=True)
    root = document_fromstring((FOLDER / f"{name}.html").read_bytes(), parser=parser)
    parts: list[str] = []
    _collect(root, False, parts)
    return "".join(parts)


def with_captions(markdown: str) -> str:
    """A text in Markdown, the captions of its pictures as text."""
    return _PICTURE.sub(r"\1", markdown)


def characters_and_words(text: str) -> list[str]:
    """What is compared of a text: words, and each character of a script that puts no space between them."""
    return _WORD.findall(text)


def _collect(element: HtmlElement, within: bool, parts: list[str]) -> None:
    mark = element.get("data-gold")
    inside = within if mark is None else mark != "no"
    # A script has text where it holds a formula, which is then marked itself.
    if element.tag in _NO_TEXT and mark is None:
        inside = False
    between = "" if element.tag in _IN_LINES else " "
    parts.append(between)
    parts.append((element.text or "") if inside else "")
    for child in element:
        _collect(child, inside, parts)
        parts.append((child.tail or "") if inside else "")
    parts.append(between)
