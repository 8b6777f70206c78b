"""Keeps names together with their descriptions, which form lists as terms do.

If a name and its description are in adjacent blocks, as in Javadoc summaries, the name is a link to details, which
could be mistaken for a link that leads elsewhere. If both are in one block, as in lists of parameters or properties,
the name is a short line at the beginning of the block.
"""

from collections.abc import Hashable

from .lines import KINDS, Block, Line, Lines, similar_blocks

_MIN_PAIRS = 3
"""Minimum number of pairs."""
_MIN_SHARE = 0.8
"""Minimum share of names whose description is content."""
_MIN_NAMED, _MAX_NAME = 2, 60
"""Minimum number of blocks that begin with a name, and the maximum length of a name in characters."""
_BUTTON = KINDS.index("button")


def complete_pairs(page: Lines, keep: list[bool]) -> None:
    """Keep the names of kept descriptions, if most blocks of one kind are such names."""
    groups: dict[Hashable, list[tuple[int, bool]]] = {}
    for number, (name, description) in enumerate(zip(page.lines, page.lines[1:], strict=False)):
        block = name.block
        if not _is_linked(name) or block.end - block.first != 1:
            continue
        while block.parent is not None and block.parent.end - block.parent.first == 1:
            block = block.parent
        # The description must be in the next sibling of the name's block.
        sibling: Block | None = description.block
        while sibling is not None and sibling.parent is not block.parent and sibling.first == block.end:
            sibling = sibling.parent
        follows = sibling is not None and sibling.parent is block.parent and sibling.first == block.end
        is_name = keep[number + 1] and not _is_linked(description) and follows
        key = (block.parent, block.element.tag, block.element.get("class"))
        groups.setdefault(key, []).append((number, is_name))
    for group in groups.values():
        names = [number for number, is_name in group if is_name]
        if len(group) >= _MIN_PAIRS and len(names) >= _MIN_SHARE * len(group):
            for number in names:
                keep[number] = True


def complete_names(page: Lines, keep: list[bool]) -> None:
    """Keep the names at the beginning of similar blocks whose other lines are kept."""
    for group in similar_blocks(page):
        names = [block.first for block in group if _begins_with_name(block, page.lines, keep)]
        if len(names) >= max(_MIN_NAMED, _MIN_SHARE * len(group)):
            for number in names:
                keep[number] = True


def _begins_with_name(block: Block, lines: list[Line], keep: list[bool]) -> bool:
    name = lines[block.first]
    if len(name.text) > _MAX_NAME or _is_linked(name) or name.enclosing[_BUTTON]:
        return False
    described = range(block.first + 1, block.end)
    return all(map(keep.__getitem__, described)) and sum(len(lines[number].text) for number in described) > len(
        name.text
    )


def _is_linked(line: Line) -> bool:
    return 2 * line.linked >= len(line.text)
