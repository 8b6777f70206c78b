"""Divides a text into passages, each with the headings above it, and finds those that answer a question.

SQLite's FTS5, which comes with Python, stems English and folds accents, ranks the passages with BM25. The packages
bm25s and rank-bm25 need numpy, and leave tokenizing and stemming to the caller. FTS5 splits text into words at
spaces, so text in scripts without spaces is indexed by pairs of characters (bigrams).
"""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import NamedTuple

from servers.common.html.tree import names_in

from ..errors import FetchError

MAX_SEARCHED_LENGTH = 1_000_000
"""Maximum number of characters of a text that are searched."""
_MAX_PASSAGES = 20_000
"""Maximum number of passages that are searched."""
_MAX_JOINED_LENGTH, _MAX_BLOCK_LENGTH = 250, 900
"""Adjacent blocks under one heading are joined up to the first number of characters. A block with more characters
than the second number is divided."""
_MAX_HEADING_LENGTH = 120
_MAX_WORDS = 64
"""Maximum number of words of a question that are searched for."""

_HEADING_LINE = re.compile(r"(#{1,6}) (.*)")
_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})")
_SENTENCE_END = re.compile(r"\n|[.!?][\"')\]]*\s+(?=[^a-z])|[。！？]")
_LINK = re.compile(r"\]\(https?:[^)\s]*\)")
_WORD = re.compile(r"[^\W_]+")
# Scripts without spaces: Thai, Lao, Burmese, Khmer, kana and Han. Hangul has spaces, but its words have suffixes.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff]+"
)
# Words that are common in questions but say nothing about the topic. BM25 weights a word by its rarity, and if few
# passages of a page contain one of these words, it would dominate the ranking.
_QUESTION_WORDS = names_in(
    """
a an and any are as at be been by can could did do does for from get had has have how i if in is it its
me my of on or our should so than that the their them there these they this those to us was we were what
when where which who whom whose why will with would you your
"""
)


class Passage(NamedTuple):
    """The characters from `start` to `end` of a text."""

    start: int
    end: int
    headings: tuple[str, ...]
    """The headings above it, outermost first."""


class Excerpts(NamedTuple):
    """Parts of a text, each below a line with its position."""

    text: str
    starts: tuple[int, ...]
    """The first character of each part."""
    shown: int
    """The number of passages or changes that `text` contains."""
    total: int
    """The number of all passages that match the question, or of all changes."""


def find_passages(text: str, question: str, room: int) -> Excerpts:
    """Return the passages that share words with `question`, in text order: the best ones that fit into `room`
    characters, or the beginning of the best one if none fits.

    Raises FetchError with code `not_found` if no passage contains any of the words, and `bad_argument` for a question
    without words.
    """
    passages = list(islice(_divide(text[:MAX_SEARCHED_LENGTH]), _MAX_PASSAGES))
    ranked = _rank(text, passages, question)
    if not ranked:
        suggestion = "Use other words, or fetch the page without `find`."
        raise FetchError("not_found", "the page has none of these words", suggestion)
    chosen: list[int] = []
    remaining = room
    for number in ranked:
        # The size of a label is counted for each passage, although adjacent passages may share a label.
        size = passages[number].end - passages[number].start + len(label(passages[number])) + 3
        if size <= remaining:
            chosen.append(number)
            remaining -= size
    if not chosen:
        best = passages[ranked[0]]
        beginning = f"{label(best)}\n{text[best.start : best.end]}"[:room]
        return Excerpts(beginning, (best.start,), 1, len(ranked))
    parts: list[Passage] = []
    for passage in (passages[number] for number in sorted(chosen)):
        # Adjacent passages under the same headings are joined.
        if parts and parts[-1].headings == passage.headings and passage.start - parts[-1].end <= 1:
            parts[-1] = parts[-1]._replace(end=passage.end)
        else:
            parts.append(passage)
    shown = "\n\n".join(f"{label(part)}\n{text[part.start : part.end].rstrip()}" for part in parts)
    return Excerpts(shown, tuple(part.start for part in parts), len(chosen), len(ranked))


def label(passage: Passage) -> str:
    """Return the position of a passage: its first character, and the path of its headings."""
    return f"[start_index {passage.start}] {' > '.join(passage.headings)}".rstrip()


def blocks_of(text: str) -> Iterator[Passage]:
    """Divide a text at blank lines and headings, but not within fenced code blocks."""
    path: list[tuple[int, str]] = []
    start, position, fence = -1, 0, ""
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        heading = None if fence or mark else _HEADING_LINE.match(line)
        if mark:
            # A block of code ends with a line of at least as many fence characters as it began with.
            fence = "" if fence and mark[1].startswith(fence) else fence or mark[1]
        if heading or (not fence and not line.strip().strip("> ")):
            if start >= 0:
                yield Passage(start, position, tuple(words for _, words in path))
            start = -1
        elif start < 0:
            start = position
        if heading:
            level = len(heading[1])
            path = [(outer_level, words) for outer_level, words in path if outer_level < level]
            path.append((level, heading[2].strip()[:_MAX_HEADING_LENGTH]))
        position += len(line)
    if start >= 0:
        yield Passage(start, position, tuple(words for _, words in path))


def _divide(text: str) -> Iterator[Passage]:
    """Divide a text into passages: short adjacent blocks are joined, and long blocks are divided between
    sentences."""
    last: Passage | None = None
    for block in blocks_of(text):
        for piece in _divide_block(text, block):
            if last is not None and last.headings == piece.headings and piece.end - last.start <= _MAX_JOINED_LENGTH:
                last = last._replace(end=piece.end)
                continue
            if last is not None:
                yield last
            last = piece
    if last is not None:
        yield last


def _divide_block(text: str, block: Passage) -> Iterator[Passage]:
    start = block.start
    while block.end - start > _MAX_BLOCK_LENGTH:
        ends = [
            end.end()
            for end in _SENTENCE_END.finditer(text, start + _MAX_BLOCK_LENGTH // 2, start + _MAX_BLOCK_LENGTH)
        ]
        end = ends[-1] if ends else start + _MAX_BLOCK_LENGTH
        yield block._replace(start=start, end=end)
        start = end
    yield block._replace(start=start)


def _rank(text: str, passages: Sequence[Passage], question: str) -> list[int]:
    """Return the numbers of the passages that contain words of the question, best first."""
    words = list(dict.fromkeys(_WORD.findall(_to_bigrams(question).casefold())))
    words = [word for word in words if word not in _QUESTION_WORDS] or words
    if not words:
        raise FetchError("bad_argument", "`find` contains no words", "Describe in words what to find.")
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(
            "CREATE VIRTUAL TABLE passages USING fts5"
            "(headings, body, tokenize = 'porter unicode61 remove_diacritics 2')"
        )
        database.executemany(
            "INSERT INTO passages (rowid, headings, body) VALUES (?, ?, ?)",
            (
                (
                    number,
                    _to_bigrams(" ".join(passage.headings)),
                    _to_bigrams(_LINK.sub("]", text[passage.start : passage.end])),
                )
                for number, passage in enumerate(passages)
            ),
        )
        query = " OR ".join(f'"{word}"' for word in words[:_MAX_WORDS])
        rows = database.execute("SELECT rowid FROM passages WHERE passages MATCH ? ORDER BY rank, rowid", (query,))
        return [number for (number,) in rows]


def _to_bigrams(text: str) -> str:
    """Return the text in which overlapping pairs of characters replace each run of a script without spaces: FTS5
    would index the run as a single word."""

    def to_pairs(run: re.Match[str]) -> str:
        characters = run[0]
        return f" {' '.join(characters[position : position + 2] for position in range(max(len(characters) - 1, 1)))} "

    # A lone surrogate becomes "?".
    return _UNSPACED.sub(to_pairs, text).encode("utf-8", "replace").decode()
