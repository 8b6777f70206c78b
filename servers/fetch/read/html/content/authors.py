"""Finds the authors of a thread's posts.

Posts are similar blocks next to each other, each with a text. The author of a post is a short link in it. In all
posts of a thread, this link is in similar elements and leads to the same directory of the site, but its words differ:
links with the same words in each post are actions, such as "Reply".
"""

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from itertools import accumulate, chain

from .lines import Block, Line, Lines, kind_of, similar_blocks

_MIN_POSTS, _MIN_SHARE = 2, 0.8
"""Minimum number of posts with a text, their minimum share among similar blocks, and the minimum share of them with
an author."""
_MIN_TEXT, _MAX_LINKS = 40, 0.2
"""Minimum length of a line of a post's text in characters, and the maximum share of links in it."""
_MAX_NAME = 25
"""Maximum length of a name in characters."""
_MIN_LINK = 0.5
"""Minimum share of the link in the line with a name. The rest may be a word such as "By"."""
_MAX_SAME = 0.75
"""Maximum share of posts by the same author; a link that more posts have is an action."""
_VARYING_PARTS = re.compile(r"[^/]*\Z|\d+")
"""The parts of an address that differ between authors: the last segment, and numbers."""


def complete_authors(page: Lines, keep: list[bool]) -> None:
    """Keep the authors of kept posts."""
    texts = [0, *accumulate(map(is_post_text, page.lines, keep))]
    for group in similar_blocks(page):
        with_text = [block for block in group if texts[block.first] < texts[block.end]]
        if len(with_text) >= max(_MIN_POSTS, _MIN_SHARE * len(group)):
            for number in find_authors(with_text, page.lines):
                keep[number] = True


def find_authors(posts: Sequence[Block], lines: list[Line]) -> Iterator[int]:
    """Yield the numbers of the lines with the posts' authors."""
    links: dict[Hashable, list[int]] = {}
    for number in chain.from_iterable(range(post.first, post.end) for post in posts):
        if _may_be_name(lines[number]):
            [link] = lines[number].links
            parent = link.getparent()
            links.setdefault((kind_of(link), kind_of(parent)), []).append(number)
    for numbers in links.values():
        is_complete = _MIN_SHARE * len(posts) <= len(numbers) <= len(posts)
        if is_complete and _are_names([lines[number] for number in numbers]):
            yield from numbers


def is_post_text(line: Line, is_kept: bool) -> bool:
    """Return True if a line is kept and long enough to be the text of a post."""
    return is_kept and len(line.text) > _MIN_TEXT and line.linked < _MAX_LINKS * len(line.text)


def _may_be_name(line: Line) -> bool:
    is_short = len(line.text) <= _MAX_NAME and line.text[-1].isalnum()
    return is_short and len(line.links) == 1 and line.linked >= _MIN_LINK * len(line.text)


def _are_names(lines: list[Line]) -> bool:
    texts = Counter(line.text for line in lines)
    places = {_VARYING_PARTS.sub("", line.links[0].get("href") or "") for line in lines}
    numbered = sum(any(map(str.isdigit, line.text)) for line in lines)
    return len(places) == 1 and max(texts.values()) <= _MAX_SAME * len(lines) and 2 * numbered <= len(lines)
