"""Omits the profiles of authors beside the posts of a thread, such as their rank and the number of their posts.

A profile is a block in a post that contains none of the post's text, but an author and values. The names of the
values, such as "Posts" in "Posts: 14", repeat from post to post, and an author of several posts has the same values
in each. This distinguishes a thread from a listing, whose items may share a maker, but not all of their facts. The
author is content, once for each post. Other lines that most posts of such a thread have, such as the subject, are
repetitions, and omitted too.
"""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import accumulate, chain, islice
from typing import NamedTuple

from .authors import find_authors, is_post_text
from .lines import KINDS, Block, Line, Lines, kind_of, similar_blocks

_VALUE = re.compile(r"([^\W\d][^\d:\uff1a.!?]{1,29})[:\uff1a]\s?(\S.*)")
"""A name and its value on one line."""
_COUNT = re.compile(r"\d[\d\s.,'\u2019]*")
"""A number, such as that of an author's posts."""
_MIN_POSTS, _MIN_SHARE = 2, 0.5
"""Minimum number and share of posts with a text, with the same name of a value, or with the same line."""
_MIN_AUTHORS = 2
"""Minimum number of different authors."""
_MIN_NAMES = 2
"""Minimum number of common names of values if an author is not a link."""
_MAX_VALUES = 20
"""Maximum mean number of values in a post."""
_PRE = KINDS.index("pre")


class _Profile(NamedTuple):
    """A block in a post, the number of the line with the author, and the values by name."""

    post: Block
    block: Block
    author: int
    values: dict[str, str]


def omit_profiles(page: Lines, keep: list[bool]) -> None:
    """Omit the profiles beside the posts of threads, except for the authors, and the lines that most posts have."""
    lines = page.lines
    values = [None if line.enclosing[_PRE] else _VALUE.fullmatch(line.text) for line in lines]
    if not any(values):
        return
    texts = [0, *accumulate(map(is_post_text, lines, keep))]
    counts = [0, *accumulate(value is not None for value in values)]
    for posts in similar_blocks(page):
        count = sum(counts[post.end] - counts[post.first] for post in posts)
        written = sum(texts[post.first] < texts[post.end] for post in posts)
        if not 0 < count <= _MAX_VALUES * len(posts) or not _are_most(written, posts):
            continue
        places = _Places(posts)
        profiles = list(_profiles_in(posts, lines, values, texts, places))
        if not _are_of_thread(profiles, posts, lines):
            continue
        for profile in profiles:
            for number in range(profile.block.first, profile.block.end):
                keep[number] = number == profile.author and not _is_linked_again(profile, lines, keep)
        authors = {profile.author for profile in profiles}
        for number in _repeated_beside_texts(posts, lines, keep, places):
            keep[number] = number in authors


def _are_most(count: int, posts: Sequence[Block]) -> bool:
    return count >= max(_MIN_POSTS, _MIN_SHARE * len(posts))


class _Places:
    """Numbers for the places of blocks inside posts. Two blocks have the same number if similar elements, from the
    post inwards, lead to them."""

    def __init__(self, posts: Sequence[Block]) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._by_block = dict.fromkeys(posts, 0)

    def find(self, block: Block) -> int:
        inner: list[Block] = []
        parent: Block | None = block
        while parent is not None and parent not in self._by_block:
            inner.append(parent)
            parent = parent.parent
        number = 0 if parent is None else self._by_block[parent]
        for below in reversed(inner):
            number = self._numbers.setdefault((number, kind_of(below.element)), len(self._numbers) + 1)
            self._by_block[below] = number
        return number


def _profiles_in(
    posts: Sequence[Block],
    lines: list[Line],
    values: Sequence[re.Match[str] | None],
    texts: list[int],
    places: _Places,
) -> Iterator[_Profile]:
    """Yield the profiles of posts. In a post without a long text, only the places at which other posts have a profile
    are searched."""
    blocks: list[tuple[Block, list[Block]]] = []
    beside_texts: set[int] = set()
    for post in posts:
        for number in range(post.first, post.end):
            if values[number] is None:
                continue
            containers = list(_blocks_without_text(lines[number].block, post, texts))
            blocks.append((post, containers))
            if containers and texts[post.first] < texts[post.end]:
                beside_texts.add(places.find(containers[-1]))
    names = set(find_authors(posts, lines))
    profiles = dict.fromkeys(
        (post, block)
        for post, containers in blocks
        for block in islice((block for block in reversed(containers) if places.find(block) in beside_texts), 1)
    )
    for post, block in profiles:
        others = [number for number in range(block.first, block.end) if values[number] is None]
        author = next((number for number in others if number in names), next(iter(others), None))
        if author is not None:
            matches = filter(None, values[block.first : block.end])
            yield _Profile(post, block, author, {match[1]: match[2] for match in matches})


def _blocks_without_text(block: Block | None, post: Block, texts: list[int]) -> Iterator[Block]:
    """Yield a block and those around it that are inside a post and have none of its text."""
    while block is not None and block is not post and texts[block.first] == texts[block.end]:
        yield block
        block = block.parent


def _are_of_thread(profiles: list[_Profile], posts: Sequence[Block], lines: list[Line]) -> bool:
    """Return True if profiles have a count in common, such as that of posts, have the same values for the same
    author, and one author has several posts."""
    times = Counter(name for profile in profiles for name in profile.values)
    common = {name for name, count in times.items() if _are_most(count, posts)}
    if not any(all(_COUNT.fullmatch(profile.values.get(name, "0")) for profile in profiles) for name in common):
        return False
    authors = [lines[profile.author] for profile in profiles]
    if len({author.text for author in authors}) < _MIN_AUTHORS:
        return False
    if len(common) < _MIN_NAMES and not all(author.links for author in authors):
        return False
    addresses = {address for author in authors for address in _addresses_of([author])}
    by_post = Counter(
        address for post in posts for address in addresses & _addresses_of(lines[post.first : post.end])
    )
    if len({author.text for author in authors}) == len(authors) and max(by_post.values(), default=0) < _MIN_POSTS:
        return False
    values = {
        (author.text, name, profile.values[name])
        for author, profile in zip(authors, profiles, strict=True)
        for name in common & profile.values.keys()
    }
    return len({(author, name) for author, name, _ in values}) == len(values)


def _addresses_of(lines: Iterable[Line]) -> set[str]:
    return {link.get("href") or "" for line in lines for link in line.links}


def _is_linked_again(profile: _Profile, lines: list[Line], keep: list[bool]) -> bool:
    """Return True if another kept line of the post links to the author."""
    post, block = profile.post, profile.block
    numbers = (*range(post.first, block.first), *range(block.end, post.end))
    others = _addresses_of(lines[number] for number in numbers if keep[number])
    return not others.isdisjoint(_addresses_of([lines[profile.author]]))


def _repeated_beside_texts(
    posts: Sequence[Block], lines: list[Line], keep: list[bool], places: _Places
) -> Iterator[int]:
    """Yield the numbers of kept lines that most posts have, except at the places at which the texts of posts
    differ."""
    numbers = [[number for number in range(post.first, post.end) if keep[number]] for post in posts]
    times = Counter(text for of_post in numbers for text in {lines[number].text for number in of_post})
    repeated = {text for text, count in times.items() if _are_most(count, posts)}
    place_of = {number: places.find(lines[number].block) for number in chain.from_iterable(numbers)}
    texts = [number for number in place_of if is_post_text(lines[number], keep[number])]
    long = Counter(place_of[number] for number in texts)
    different = Counter(place_of[number] for number in texts if lines[number].text not in repeated)
    written = {place for place, count in different.items() if 2 * count > long[place]}
    if written:
        yield from (n for n, place in place_of.items() if lines[n].text in repeated and place not in written)
