"""Decides the role of a line on a page: a paragraph, a caption, page furniture (navigation, footers, toolbars,
dialogs), or a link or button that leads elsewhere."""

from .evidence import is_heading
from .lines import KINDS, Block, Line

LANDMARK_TAGS = ("header", "nav", "footer", "aside", "form")
LINK_SHARE = 0.5
"""Minimum share of links in a line that leads elsewhere."""
MAX_LABEL = 40
"""Maximum length of a button's label, in characters. A longer text in a button is a sentence."""
_MIN_PARAGRAPH = 80
"""Minimum length of a line that is a paragraph, in characters."""
PARAGRAPH_TAGS = ("p", "div")
_FURNITURE_KINDS = tuple(map(KINDS.index, ("nav", "footer", "toolbar", "dialog")))
_BUTTON = KINDS.index("button")


def is_furniture(line: Line) -> bool:
    """Return True if a line is in navigation, a footer, a toolbar or a dialog, which never contain content."""
    return any(map(line.enclosing.__getitem__, _FURNITURE_KINDS))


def is_in_landmark(line: Line, block: Block) -> bool:
    """Return True if there is a landmark between a line and the block that contains both it and the content."""
    inner = line.block
    while inner is not block and inner.parent is not None:
        if inner.element.tag in LANDMARK_TAGS or inner.element.get("role") == "navigation":
            return True
        inner = inner.parent
    return False


def leads_away(line: Line, block: Block) -> bool:
    """Return True if a line leads elsewhere: it is a link or a button, or is in a landmark inside the block that
    contains the content."""
    is_button = line.enclosing[_BUTTON] > 0 and len(line.text) <= MAX_LABEL
    return is_button or line.linked >= LINK_SHARE * len(line.text) or is_in_landmark(line, block)


def is_text_in(line: Line, container: Block | None) -> bool:
    """Return True if a line is a paragraph or a heading in the container."""
    block: Block | None = line.block
    while block is not None and block is not container:
        block = block.parent
    is_text = is_heading(line) or len(line.text) >= _MIN_PARAGRAPH
    return block is not None and is_text and line.linked < LINK_SHARE * len(line.text)


def is_caption(line: Line) -> bool:
    """Return True if a line is in the caption of a figure."""
    block: Block | None = line.block
    while block is not None and block.element.tag in PARAGRAPH_TAGS:
        block = block.parent
    return block is not None and block.element.tag == "figcaption"
