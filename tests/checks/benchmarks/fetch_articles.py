"""The public benchmark of article extraction (github.com/scrapinghub/article-extraction-benchmark): its pages, and
how near an extracted text comes to what its authors marked as the body of the article.

Nothing of it is in this project: `--articles` names the folder where it was cloned.
"""

import gzip
import json
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.npm import Unavailable

ARTICLES = "articles"
"""The name under which the folder stands among the other files of a run."""
SHINGLE = 4
"""Words that are compared as one."""

_WORD = re.compile(r"\w+")
_PAGE = re.compile(r"<page-(\w+)>[^\n]*\n(.*)\n</page-\1>", re.DOTALL)
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")


class Score(NamedTuple):
    """How good the texts are, each from 0 to 1."""

    f1: float
    precision: float
    recall: float


def names_of(folder: Path) -> list[str]:
    """The names of all pages. Raises Unavailable where the folder was not given."""
    if not (folder / ARTICLES / "ground-truth.json").exists():
        raise Unavailable("--articles does not name the folder of the article extraction benchmark")
    return sorted(truths_of(folder))


def truths_of(folder: Path) -> dict[str, str]:
    """The text of each article, by the name of its page."""
    truths = json.loads((folder / ARTICLES / "ground-truth.json").read_text())
    return {name: one.get("articleBody", "") for name, one in truths.items()}


def html_of(folder: Path, name: str) -> bytes:
    """The page; all are in UTF-8."""
    return gzip.decompress((folder / ARTICLES / "html" / f"{name}.html.gz").read_bytes())


def content_of(answer: bytes) -> str:
    """The text of the page in the answer of a tool, without what a server says around it; empty for a failure."""
    result = json.loads(answer).get("result", {})
    if not result or result.get("isError"):
        return ""
    text: str = result["content"][0]["text"]
    found = _PAGE.search(text)
    if found is None:
        return text.partition("\n")[2]
    return found[2][len(found[2]) - int(result["_meta"]["length"]) :]


def plain(markdown: str) -> str:
    """What a reader sees of a text in Markdown, but for its headline, which that benchmark keeps apart from the body:
    a heading of the first level before all other text."""
    blocks = list(_blocks(markdown))
    first = next((number for number, (_, text) in enumerate(blocks) if text.strip()), 0)
    return "\n".join(text for number, (tag, text) in enumerate(blocks) if number != first or tag != "h1")


def with_headline(markdown: str) -> str:
    """The same with the headline."""
    return "\n".join(text for _, text in _blocks(markdown))


def _blocks(markdown: str) -> Iterator[tuple[str, str]]:
    """The tag and the text of each block. No words are what Markdown is written with, URLs that are not shown, the
    names of pictures, and the numbers of lists."""
    tag = ""
    for token in _MARKDOWN.parse(markdown):
        tag = token.tag if token.nesting == 1 else tag
        if token.type == "inline":
            yield tag, "".join(map(_text_of, token.children or ()))
        elif not token.nesting:
            yield token.tag, token.content


def _text_of(token: Token) -> str:
    if token.type == "image":
        return " "
    return "\n" if token.type in ("hardbreak", "softbreak") else token.content


def words_of(text: str) -> list[str]:
    """What is compared of a text."""
    return _WORD.findall(text)


def score(texts: Iterable[tuple[str, str]], words: Callable[[str], list[str]] = words_of) -> Score:
    """Of pairs of an article as it is and as it was found, as that benchmark has it: each page counts the same, and
    one where nothing was found counts for recall alone."""
    shares = [_shares(words(true), words(found)) for true, found in texts]
    precision = statistics.fmean(right / (right + wrong) for right, wrong, _ in shares if right + wrong)
    recall = statistics.fmean(right / (right + missed) for right, _, missed in shares if right + missed)
    return Score(2 * precision * recall / (precision + recall), precision, recall)


def _shares(true: list[str], found: list[str]) -> tuple[int, int, int]:
    """How many runs of words are right, wrong, and missed. What is divided by their sum in the benchmark is a ratio
    here all the same."""
    expected, given = _shingles(true), _shingles(found)
    right = (expected & given).total()
    return right, given.total() - right, expected.total() - right


def _shingles(words: list[str]) -> Counter[tuple[str, ...]]:
    """A text that is shorter than one is one as a whole."""
    runs = (tuple(words[start : start + SHINGLE]) for start in range(max(1, len(words) - SHINGLE + 1)))
    return Counter(run for run in runs if run)
