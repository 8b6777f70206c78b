"""Numeric features that indicate whether lines are content, independent of the language and of class and id names.

Boilerplate can be recognized by structure: it is in landmarks (`nav`, `footer`), consists mostly of links, is at the
edges of the page, or repeats. Content looks different on each kind of page:

* an article has long lines with sentences, under a headline that is in the title;
* documentation has an outline, with code, terms, cells and sentences under its headings;
* a forum repeats one shape of block, which contains sentences;
* a listing or a collection repeats one shape of block as well, with a picture, a short text, a price or a date in
  each block; these blocks are the largest group of similar ones, near the headline;
* a product page has a headline, fields to buy with, lists and tables of facts in one block, and JSON-LD that
describes
  the product: smaller groups of blocks after these are other products;
* the page of a service has many sections, each a heading with short lines that are not links.

So each line has numbers for its own words, for its place on the page and in the outline, for the blocks around it,
for the largest group of similar blocks that it is in, for all lines of its shape, for the adjacent lines, for the
whole page, and for what the page declares (`declarations`). Two lines have the same shape if the same tags lead to
them (`path`), or if the tags and classes of the nearest blocks are equal (`near`). Classes are compared with each
other and not interpreted.
"""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from itertools import accumulate
from math import log2

from servers.common.html.tree import HEADINGS

from .declarations import KINDS_OF_THINGS, Declarations
from .lines import KINDS, Block, Line, Lines

Columns = dict[str, list[float]]
"""Features by name, each with one number for each line."""

_SENTENCE = re.compile(r"[.!?\u061f\u0964](?=\s|$|[\"'\u201d\u2019)])|[\u3002\uff01\uff1f]")
_PRICE = re.compile(r"[$\u20ac\u00a3\u00a5\u20b9\u20bd]\s?\d|\d\s?[$\u20ac\u00a3\u00a5\u20b9\u20bd]")
_DATE = re.compile(r"\b(?:19|20)\d\d\b|\b\d{1,2}[:/.]\d{2}\b")
_NAME_AND_VALUE = re.compile(r"[^:\uff1a.!?]{2,40}[:\uff1a]\s?\S")
"""The beginning of a line with a name, a colon and a value."""
_WORD = re.compile(r"\w+")
_MIN_PARAGRAPH_LENGTH = 80
"""Minimum number of characters of a line that counts as a paragraph rather than a label."""
_MAX_LINK_SHARE = 0.3
"""Maximum share of links in a paragraph."""
_SIMILAR_TAGS = (
    "p",
    "div section article main body center aside header footer nav form fieldset address details dialog hgroup",
    "li",
    "td th tr caption",
    "dt",
    "dd",
    "pre listing plaintext",
    "blockquote",
    "figcaption figure legend summary",
    *HEADINGS,
)
"""Tags by the role of their text; those on one line have the same number."""
_TAGS = {tag: number for number, tags in enumerate(_SIMILAR_TAGS) for tag in tags.split()}
_OTHER_TAG = 1
_BLOCK_LEVELS = 4
"""Number of enclosing blocks of a line that are considered, each with more lines than the previous one."""
_MAX_LARGEST_SHARE, _MAX_SECOND_SHARE = 0.7, 0.2
"""Maximum shares of the page for the two largest blocks considered."""
_MIN_TITLE_SIMILARITY = 0.1
"""Minimum similarity to the title of a heading that is the page's headline."""
_NO_DISTANCE = -2.0
"""The value for a distance to a heading that the page does not have."""


def measure_lines(page: Lines, declared: Declarations) -> Columns:
    """Return all features of a page's lines (at least one), including those from its declarations."""
    lines = page.lines
    title_words = set(_WORD.findall(declared.title.lower()))
    times = Counter(line.text for line in lines)
    names = "chars words sentences capitals digits ends colon links hrefs price date named titled of_title times tag"
    words = _make_columns(names.split(), [_measure_words(line, title_words, times[line.text]) for line in lines])
    counts = _Counts(lines, words)
    blocks = _EnclosingBlocks(page, counts)
    shapes = _find_shapes(lines)
    chars = counts.chars
    return {
        **words,
        **{f"in_{kind}": [float(line.enclosing[number]) for line in lines] for number, kind in enumerate(KINDS)},
        "chars_before": chars[:-1],
        "chars_after": [chars[-1] - before for before in chars[1:]],
        "level": [float(line.block.level) for line in lines],
        **_measure_sections(lines, counts, words),
        **blocks.columns(),
        **_measure_shapes(counts, words, shapes),
        **_measure_neighbors(words),
        **_measure_page(page, counts),
        **_measure_declarations(lines, declared),
    }


class _Counts:
    """Running totals of all features, for sums over any range of lines."""

    def __init__(self, lines: Sequence[Line], words: Columns) -> None:
        chars = words["chars"]
        self.chars = _accumulate(chars)
        self.linked = _accumulate(float(line.linked) for line in lines)
        self.long = _accumulate(
            size if size >= _MIN_PARAGRAPH_LENGTH and line.linked < _MAX_LINK_SHARE * size else 0.0
            for size, line in zip(chars, lines, strict=True)
        )
        self.sentences = _accumulate(words["sentences"])
        self.headings = _accumulate(float(is_heading(line)) for line in lines)
        self.prices = _accumulate(words["price"])
        self.pictures = [float(line.pictures) for line in (*lines, lines[-1])]
        self.fields = [float(line.fields) for line in (*lines, lines[-1])]

    def measure(self, first: int, end: int) -> tuple[float, ...]:
        """Return the features listed in `_BLOCK_FEATURES`."""
        chars = self.chars[end] - self.chars[first]
        total = self.chars[-1]
        count = end - first
        return (
            chars / total,
            (self.linked[end] - self.linked[first]) / chars,
            log2(1 + count),
            chars / count,
            (self.long[end] - self.long[first]) / chars,
            100 * (self.sentences[end] - self.sentences[first]) / chars,
            (self.headings[end] - self.headings[first]) / count,
            (self.pictures[end] - self.pictures[first]) / count,
            (self.fields[end] - self.fields[first]) / count,
            (self.prices[end] - self.prices[first]) / count,
            self.chars[first] / total,
            self.chars[end] / total,
        )

    def measure_group(self, same: Sequence[Block]) -> tuple[float, ...]:
        """Return the features listed in `_GROUP_FEATURES` for a group of blocks in order."""
        count, total = len(same), self.chars[-1]
        chars, linked, pictures, prices, sentences = (
            sum(column[block.end] - column[block.first] for block in same)
            for column in (self.chars, self.linked, self.pictures, self.prices, self.sentences)
        )
        return (
            count,
            chars / total,
            chars / count,
            pictures / count,
            prices / count,
            sentences / count,
            linked / chars,
            self.chars[same[0].first] / total,
            self.chars[same[-1].end] / total,
        )


_BLOCK_FEATURES = (
    "share",
    "links",
    "lines",
    "length",
    "long",
    "sentences",
    "headings",
    "pictures",
    "fields",
    "prices",
    "start",
    "end",
)


_GROUP_FEATURES = ("count", "share", "length", "pictures", "prices", "sentences", "links", "start", "end")
_GROUP_LEVELS = 6
"""Number of enclosing blocks of a line that are considered for its group."""


def _accumulate(values: Iterable[float]) -> list[float]:
    """Return the sum of all values before each one, and the total."""
    return [0.0, *accumulate(values)]


def is_heading(line: Line) -> bool:
    """Return True if the line is a heading."""
    return line.block.element.tag in HEADINGS


def _make_columns(names: Iterable[str], rows: Iterable[Sequence[float]]) -> Columns:
    return {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def _measure_words(line: Line, title_words: set[str], times: int) -> tuple[float, ...]:
    text = line.text
    chars = len(text)
    words = _WORD.findall(text.lower())
    count = len(words) or 1
    same = title_words.intersection(words)
    return (
        chars,
        len(words),
        len(_SENTENCE.findall(text)),
        sum(word[0].isupper() for word in text.split()) / count,
        sum(map(str.isdigit, text)) / chars,
        float(text[-1] in ".!?\u3002\uff01\uff1f"),
        float(text[-1] in ":\uff1a"),
        line.linked / chars,
        len(line.links),
        float(_PRICE.search(text) is not None),
        float(_DATE.search(text) is not None),
        float(_NAME_AND_VALUE.match(text) is not None),
        sum(word in same for word in words) / count,
        len(same) / (len(title_words) or 1),
        times,
        _TAGS.get(line.block.element.tag, _OTHER_TAG),
    )


def _measure_sections(lines: Sequence[Line], counts: _Counts, words: Columns) -> Columns:
    """Return the features of each line's section, which begins at a heading of any level; and the line's distances to
    the first h1 and to the heading that is most similar to the title, as shares of the page.
    """
    headings = [number for number, line in enumerate(lines) if is_heading(line)]
    rows: list[tuple[float, ...]] = []
    likeness = [of_title * titled for of_title, titled in zip(words["of_title"], words["titled"], strict=True)]
    for order, (start, end) in enumerate(zip([0, *headings], [*headings, len(lines)], strict=True)):
        if start == end:
            continue
        tag = lines[start].block.element.tag
        level = float(tag[1]) if tag in HEADINGS else 0.0
        chars = counts.chars[end] - counts.chars[start]
        links = (counts.linked[end] - counts.linked[start]) / chars
        sentences = 100 * (counts.sentences[end] - counts.sentences[start]) / chars
        of_section = (
            chars,
            links,
            sentences,
            likeness[start],
            order,
            counts.prices[end] - counts.prices[start],
            counts.pictures[end] - counts.pictures[start],
        )
        first, linked = counts.chars[start], words["links"][start]
        rows += [
            (level, number - start, counts.chars[number] - first, linked, *of_section) for number in range(start, end)
        ]
    names = (
        "under under_lines under_chars under_linked section section_links section_sentences"
        " under_titled under_order section_prices section_pictures"
    )
    headline = next((number for number in headings if lines[number].block.element.tag == "h1"), None)
    best = max(headings, key=likeness.__getitem__, default=None)
    columns = _make_columns(names.split(), rows)
    columns["from_h1"] = _measure_distances(counts, headline)
    columns["from_title"] = _measure_distances(
        counts, best if best is not None and likeness[best] >= _MIN_TITLE_SIMILARITY else None
    )
    return columns


def _measure_distances(counts: _Counts, number: int | None) -> list[float]:
    before = counts.chars[:-1]
    if number is None:
        return [_NO_DISTANCE] * len(before)
    return [(chars - before[number]) / counts.chars[-1] for chars in before]


class _EnclosingBlocks:
    """The enclosing blocks of each line, each with more lines than the previous one."""

    def __init__(self, page: Lines, counts: _Counts) -> None:
        self.lines = page.lines
        full = [block for block in page.blocks if block.first < block.end]
        self.members: dict[Hashable, list[Block]] = {}
        for block in full:
            self.members.setdefault(_make_group_key(block), []).append(block)
        self.alike = {key: len(same) for key, same in self.members.items()}
        self.groups: dict[Hashable, tuple[float, ...]] = {}
        self.counts = counts
        self.chains: dict[Block, list[Block]] = {}
        self.features: dict[Block, tuple[float, ...]] = {}
        for block in full:
            chain = [block]
            parent = block.parent
            if parent is not None:
                # A parent precedes its blocks in page order, so its chain exists already.
                outer = self.chains[parent]
                chain += outer if _count_lines(parent) > _count_lines(block) else outer[1:]
            self.chains[block] = chain
            self.features[block] = counts.measure(block.first, block.end)

    def columns(self) -> Columns:
        """Return the features of the nearest enclosing blocks of each line, of the largest enclosing block with less
        than `_MAX_LARGEST_SHARE` of the page, and of the largest with less than `_MAX_SECOND_SHARE`; the number of
        blocks similar to each of the nearest ones; and the features of the line's largest group.
        """
        rows: dict[Block, tuple[float, ...]] = {}
        for block in {line.block: None for line in self.lines}:
            chain = self.chains[block]
            levels = [chain[min(level, len(chain) - 1)] for level in range(_BLOCK_LEVELS)]
            largest = next(
                (other for other in reversed(chain) if self.features[other][0] < _MAX_LARGEST_SHARE), block
            )
            part = next((other for other in reversed(chain) if self.features[other][0] < _MAX_SECOND_SHARE), block)
            numbers = [number for other in (*levels, largest, part) for number in self.features[other]]
            # The largest group of similar adjacent blocks that contains the line.
            key = _make_group_key(max(chain[:_GROUP_LEVELS], key=lambda other: self.alike[_make_group_key(other)]))
            if key not in self.groups:
                self.groups[key] = self.counts.measure_group(self.members[key])
            alike = [self.alike[_make_group_key(other)] for other in levels]
            rows[block] = (*numbers, *alike, *self.groups[key])
        which = (*range(_BLOCK_LEVELS), "most", "part")
        names = [f"{name}_{size}" for size in which for name in _BLOCK_FEATURES]
        names += [f"alike_{level}" for level in range(_BLOCK_LEVELS)]
        names += [f"{name}_group" for name in _GROUP_FEATURES]
        return _make_columns(names, [rows[line.block] for line in self.lines])


def _count_lines(block: Block) -> int:
    return block.end - block.first


def _make_group_key(block: Block) -> Hashable:
    """Return a key that is the same for similar adjacent blocks."""
    return block.parent, block.element.tag, block.element.get("class")


def _find_shapes(lines: Sequence[Line]) -> list[list[int]]:
    paths: dict[Hashable, int] = {}
    nears: dict[Hashable, int] = {}
    of_block: dict[Block | None, int] = {None: -1}
    columns: list[list[int]] = [[], []]
    for line in lines:
        chain: list[Block] = []
        block: Block | None = line.block
        while block is not None and block not in of_block:
            chain.append(block)
            block = block.parent
        for inner in reversed(chain):
            of_block[inner] = paths.setdefault((of_block[inner.parent], inner.element.tag), len(paths))
        parent = line.block.parent or line.block
        nearest = (line.block, parent, parent.parent or parent)
        key = tuple((inner.element.tag, inner.element.get("class")) for inner in nearest)
        # Links and other lines have different shapes.
        is_link = 2 * line.linked > len(line.text)
        columns[0].append(2 * of_block[line.block] + is_link)
        columns[1].append(nears.setdefault((key, is_link), len(nears)))
    return columns


def _measure_shapes(counts: _Counts, words: Columns, shapes: list[list[int]]) -> Columns:
    columns: Columns = {}
    for kind, numbers in zip(("path", "near"), shapes, strict=True):
        members: dict[int, list[int]] = {}
        for line, number in enumerate(numbers):
            members.setdefault(number, []).append(line)
        rows: dict[int, tuple[float, ...]] = {}
        total, last = counts.chars[-1], len(numbers)
        for number, same in members.items():
            chars = sum(words["chars"][line] for line in same)
            sentences = sum(words["sentences"][line] for line in same)
            means = chars / len(same), sentences / len(same)
            rows[number] = len(same), chars / total, *means, same[0] / last, same[-1] / last
        names = [f"{kind}_{name}" for name in ("lines", "share", "length", "sentences", "first", "last")]
        columns |= _make_columns(names, [rows[number] for number in numbers])
    return columns


def _measure_neighbors(words: Columns) -> Columns:
    columns: Columns = {}
    for name in ("chars", "links", "tag", "sentences"):
        column = words[name]
        for steps in (-2, -1, 1, 2):
            # The value of the line at this distance after each line; -1 if there is none.
            missing = [-1.0] * min(abs(steps), len(column))
            columns[f"{name}{steps:+d}"] = missing + column[:steps] if steps < 0 else column[steps:] + missing
    for name in ("chars", "links", "sentences"):
        for width in (4, 12):
            columns[f"{name}_beside_{width}"] = _average_nearby(words[name], width)
    return columns


def _average_nearby(column: list[float], width: int) -> list[float]:
    """Return, for each line, the mean over the line and `width` lines before and after it."""
    last, values = len(column), _accumulate(column)
    edges = [(max(0, number - width), min(last, number + width + 1)) for number in range(last)]
    return [(values[end] - values[first]) / (end - first) for first, end in edges]


def _measure_page(page: Lines, counts: _Counts) -> Columns:
    count = len(page.lines)
    tags = Counter(block.element.tag for block in page.blocks)
    numbers = {
        f"{name}_page": number
        for name, number in zip(_BLOCK_FEATURES[1:-2], counts.measure(0, count)[1:-2], strict=True)
    }
    numbers["chars_page"] = counts.chars[-1]
    numbers |= {f"{tag}_page": float(tags[tag]) for tag in ("article", "main", "h1", "pre", "dt")}
    numbers |= {f"{tag}_page": tags[tag] / count for tag in ("p", "li", "td")}
    return {name: [number] * count for name, number in numbers.items()}


def _measure_declarations(lines: Sequence[Line], declared: Declarations) -> Columns:
    """Return the kinds of subjects that the page declares, and the share of each line's words in its descriptions."""
    runs = {run for text in declared.descriptions for run in _split_runs(text)} - {()}
    count = len(lines)
    columns: Columns = {f"about_{kind}": [float(kind in declared.about)] * count for kind in KINDS_OF_THINGS}
    columns["declared_page"] = [log2(1 + len(runs))] * count
    columns["declared"] = [0.0] * count
    for number, line in enumerate(lines if runs else ()):
        own = _split_runs(line.text)
        columns["declared"][number] = sum(run in runs for run in own) / len(own)
    for width in (4, 12):
        columns[f"declared_beside_{width}"] = _average_nearby(columns["declared"], width)
    return columns


def _split_runs(text: str) -> list[tuple[str, ...]]:
    """Return the runs of three words in a text; for a shorter text, all of its words."""
    words = _WORD.findall(text.lower())
    return list(zip(words, words[1:], words[2:], strict=False)) if len(words) > 2 else [tuple(words)]
