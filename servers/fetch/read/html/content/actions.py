"""Omits calls to action between parts of the content, such as links to edit a section, and subscription forms."""

from itertools import pairwise

from .evidence import is_heading
from .lines import IN_BRACKETS, Block, Line, Lines
from .roles import LINK_SHARE, is_text_in

_MAX_FORM = 300
"""Maximum length of an invitation to subscribe, in characters."""


def omit_actions(lines: list[Line], keep: list[bool]) -> None:
    """Omit the actions after a section's heading, which are links in brackets, such as `[edit]`."""
    for number, (previous, line) in enumerate(pairwise(lines), 1):
        is_beside = previous.block.parent is line.block or line.block.parent is previous.block
        if is_heading(previous) and is_beside and line.linked >= LINK_SHARE * len(line.text):
            keep[number] = keep[number] and IN_BRACKETS.fullmatch(line.text) is None


def omit_subscriptions(page: Lines, keep: list[bool]) -> None:
    """Omit an invitation to subscribe: a short block between paragraphs, with a form for an email address."""
    lines = page.lines
    for form in page.blocks:
        if form.element.tag != "form" or next(form.element.iterfind(".//input[@type='email']"), None) is None:
            continue
        block: Block | None = None
        parent: Block | None = form
        while parent is not None and sum(len(line.text) for line in lines[parent.first : parent.end]) <= _MAX_FORM:
            block, parent = parent, parent.parent
        if block is not None and block.first > 0 and block.end < len(lines):
            neighbours = (block.first - 1, block.end)
            if all(keep[number] and is_text_in(lines[number], parent) for number in neighbours):
                keep[block.first : block.end] = [False] * (block.end - block.first)
