"""What a reader sees of a tree: its markup mended, what is hidden taken out."""

from lxml.html import HtmlElement

from servers.common.html.markup.aria import show_attributes
from servers.common.html.markup.footnotes import mark_footnotes
from servers.common.html.markup.formulas import drop_drawn_formulas, show_formulas
from servers.common.html.markup.hidden import remove_hidden
from servers.common.html.markup.unscripted import show_unscripted
from servers.common.html.tree import flatten


def leave_what_is_seen(root: HtmlElement) -> tuple[int, int]:
    """Leave only what a reader sees; return how many hidden elements and invisible characters were taken out."""
    show_unscripted(root)
    show_formulas(root)
    removed = remove_hidden(root)
    drop_drawn_formulas(root)
    show_attributes(root)
    mark_footnotes(root)
    flatten(root)
    return removed
