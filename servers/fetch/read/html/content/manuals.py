"""Keeps the parts of a manual that look like boilerplate: signatures, sections of links, and introductions.

A manual is a page with code, with terms, or with signatures to which the page itself links. If enough of a manual is
content, the rest is kept too.
"""

import re
from collections.abc import Hashable
from itertools import compress
from urllib.parse import unquote

from .evidence import is_heading
from .lines import KINDS, Block, Lines, share_of, sizes_of
from .roles import LINK_SHARE, is_in_landmark, leads_away

_SECTION_TAGS, _MIN_SECTIONS = ("section", "div"), 4
"""Elements that contain a section of a manual, and the minimum number of adjacent ones."""
_MANUAL_SHARE, _OUTLINED_SHARE = 0.75, 0.45
"""Minimum shares of content on a page that is a manual, and on one that may be."""
_MIN_TERMS = 8
"""Minimum number of terms and examples in a manual."""
_MIN_DEFINITIONS = 2
"""Minimum number of signatures to which a manual links."""
_SIGNATURE = re.compile(
    r"^\([^\W\d]|[^\W\d]\(|::|[-=]>|[\u2192\u21d2]"
    r"|^(?:(?:abstract|export|private|protected|pub|public|static) )*"
    r"(?:class|const|def|enum|fn|func|function|interface|macro|module|struct|trait|type) [^\W\d]"
)
"""Part of a signature: a call, the characters between a name and its type, or a keyword before a name."""
_CODE_SHARE = 0.5
"""Minimum share of content in the part of a page that describes code."""
_LINKED_SHARE = 0.8
"""Minimum share of links in a line that is not a sentence or a type."""
_OUTLINE_TAGS = ("dt", "pre")
_SECTION, _PRE, _DL, _ASIDE = map(KINDS.index, ("section", "pre", "dl", "aside"))


def complete_sections(page: Lines, keep: list[bool]) -> None:
    """If all but one of the sections of a manual have kept text, keep the last one too, such as a list of links to
    related pages."""
    if not any(line.enclosing[_PRE] or line.enclosing[_DL] for line in compress(page.lines, keep)):
        return
    groups: dict[Hashable, list[Block]] = {}
    for block in page.blocks:
        if block.end - block.first > 1 and block.element.tag in _SECTION_TAGS and is_heading(page.lines[block.first]):
            level = page.lines[block.first].block.element.tag
            groups.setdefault((block.parent, block.element.get("class"), level), []).append(block)
    for group in groups.values():
        omitted = [block for block in group if not any(keep[block.first + 1 : block.end])]
        if len(group) >= _MIN_SECTIONS and len(omitted) == 1:
            for number in range(omitted[0].first, omitted[0].end):
                keep[number] = not is_in_landmark(page.lines[number], omitted[0])


def complete_sections_of_code(page: Lines, keep: list[bool]) -> None:
    """Keep all sections of a page about code, such as the return value of a function, except for links that lead
    elsewhere. At least half of the block with the headline and the code has to be kept.
    """
    lines = page.lines
    code = [number for number, line in enumerate(lines) if keep[number] and line.enclosing[_PRE]]
    headline = next((number for number, line in enumerate(lines) if line.block.element.tag == "h1"), None)
    if not code or headline is None or headline > code[0]:
        return
    block = lines[code[0]].block
    while not (block.first <= headline and code[-1] < block.end) and block.parent is not None:
        block = block.parent
    kept_size, size = sizes_of(lines, keep, block)
    if kept_size >= _CODE_SHARE * size:
        for number in range(block.first, block.end):
            line = lines[number]
            # The links in a sentence or in a type lead to what it is about.
            is_text = line.linked < _LINKED_SHARE * len(line.text) and not leads_away(line._replace(linked=0), block)
            keep[number] = keep[number] or (is_text and line.enclosing[_SECTION] > 0)


def complete_manual(page: Lines, keep: list[bool]) -> None:
    """Keep all of a manual. If a page with terms and examples is mostly content, omit only landmarks. If less of it
    is content, also omit links that lead elsewhere. On a page with definitions, it is enough if the block around them
    is mostly content.
    """
    lines = page.lines
    definitions = _find_definitions(page)
    terms = [number for number, line in enumerate(lines) if keep[number] and line.block.element.tag in _OUTLINE_TAGS]
    outline = sorted(definitions.union(terms))
    has_terms, is_defined = len(terms) >= _MIN_TERMS, len(definitions) >= _MIN_DEFINITIONS
    if not has_terms and not is_defined:
        return
    block = lines[outline[0]].block
    while not (block.first <= outline[0] and outline[-1] < block.end) and block.parent is not None:
        block = block.parent
    body = page.blocks[0]
    if max(share_of(lines, keep, part) for part in ((block, body) if is_defined else (body,))) < _OUTLINED_SHARE:
        return
    is_whole = has_terms and share_of(lines, keep, body) >= _MANUAL_SHARE
    for number in range(block.first, block.end):
        line = lines[number]
        # The links in a sentence or in a type lead to what it is about.
        is_text = is_whole or number in definitions or (is_defined and line.linked < _LINKED_SHARE * len(line.text))
        is_note = line.enclosing[_ASIDE] > 0 and number < outline[-1] and line.linked < LINK_SHARE * len(line.text)
        leads = is_in_landmark(line, block) if is_text else leads_away(line, block)
        keep[number] = keep[number] or is_note or not leads
    if is_defined:
        _complete_introduction(page, keep, block)


def _complete_introduction(page: Lines, keep: list[bool], block: Block) -> None:
    """Keep the text between the title of a manual and the block with its definitions, except for links."""
    lines = page.lines
    parent = block
    while parent.parent is not None and share_of(lines, keep, parent.parent) >= _OUTLINED_SHARE:
        parent = parent.parent
    before = range(parent.first, block.first)
    headline = next((number for number in before if lines[number].block.element.tag == "h1"), parent.first)
    for number in range(headline, block.first):
        row = lines[number].block.parent
        # A number in the same row as a link belongs to a table of contents.
        others = lines[row.first : row.end] if row is not None and row.element.tag == "tr" else [lines[number]]
        keep[number] = keep[number] or not any(leads_away(line, parent) for line in others)


def _find_definitions(page: Lines) -> set[int]:
    """Return the numbers of the lines with a signature, such as a function's, to which the page itself links."""
    lines = page.lines
    fragments = {(link.get("href") or "").partition("#")[2] for line in lines for link in line.links}
    definitions: set[int] = set()
    for name in fragments:
        number = page.anchors.get(unquote(name), page.anchors.get(name, len(lines)))
        if number < len(lines) and not is_heading(lines[number]) and lines[number].linked == len(lines[number].text):
            # The definition follows a link to itself.
            number += 1
        # A heading may have only the name, and the next line the signature.
        pair = lines[number : number + 2]
        if any(_SIGNATURE.search(line.text) and pair[0].text.split()[-1] in line.text for line in pair):
            definitions.add(number)
    return definitions
