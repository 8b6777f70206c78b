"""Reduces a tree to its visible part, and corrects its markup."""

from typing import NamedTuple

from lxml.html import HtmlElement

from .markup.aria import show_attributes
from .markup.captions import mark_captions
from .markup.drawings import show_drawings
from .markup.footnotes import mark_footnotes
from .markup.formulas import drop_drawn_formulas, show_formulas
from .markup.headings import end_headings
from .markup.hidden import remove_hidden
from .markup.numbered import remove_line_numbers
from .markup.preformatted import mark_preformatted
from .markup.tables import repair_tables
from .markup.terms import end_terms
from .markup.unscripted import show_unscripted
from .tree import flatten


class VisibleResult(NamedTuple):
    """The changes that were made to a tree."""

    elements: int
    """Number of hidden elements with text that were removed."""
    characters: int
    """Number of invisible characters that were removed."""
    is_late: bool
    """True if text was made visible that only a script would show."""


def keep_visible(root: HtmlElement) -> VisibleResult:
    """Reduce a tree to its visible part."""
    is_late = show_unscripted(root)
    show_formulas(root)
    elements, characters = remove_hidden(root)
    end_headings(root)
    end_terms(root)
    repair_tables(root)
    mark_captions(root)
    drop_drawn_formulas(root)
    show_drawings(root)
    flatten(root)
    show_attributes(root)
    remove_line_numbers(root)
    mark_preformatted(root)
    mark_footnotes(root)
    return VisibleResult(elements, characters, is_late)
