"""Names and their descriptions in adjacent blocks, as in Javadoc summaries, which have the structure of lists of
terms.

The name is a link to details, so it looks as if it leads elsewhere.
"""

from collections.abc import Hashable

from servers.fetch.read.html.content.lines import Block, Line, Lines

_MIN_PAIRS = 3
"""Minimum number of pairs."""
_MIN_SHARE = 0.8
"""Minimum share of names whose description is content."""


def complete_pairs(page: Lines, keep: list[bool]) -> None:
    """Keep the names of kept descriptions, if most blocks of one kind are such names."""
    groups: dict[Hashable, list[tuple[int, bool]]] = {}
    for number, (name, description) in enumerate(zip(page.lines, page.lines[1:], strict=False)):
        block = name.block
        if not _is_linked(name) or block.end - block.first != 1:
            continue
        while block.around is not None and block.around.end - block.around.first == 1:
            block = block.around
        # The description must be in the next sibling of the name's block.
        sibling: Block | None = description.block
        while sibling is not None and sibling.around is not block.around and sibling.first == block.end:
            sibling = sibling.around
        follows = sibling is not None and sibling.around is block.around and sibling.first == block.end
        is_name = keep[number + 1] and not _is_linked(description) and follows
        key = (block.around, block.element.tag, block.element.get("class"))
        groups.setdefault(key, []).append((number, is_name))
    for group in groups.values():
        names = [number for number, is_name in group if is_name]
        if len(group) >= _MIN_PAIRS and len(names) >= _MIN_SHARE * len(group):
            for number in names:
                keep[number] = True


def _is_linked(line: Line) -> bool:
    return 2 * line.linked >= len(line.text)
