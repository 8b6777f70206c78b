"""The role of a line on a page: a paragraph, a caption, furniture, or something that leads elsewhere."""

from servers.fetch.read.html.content.evidence import is_heading
from servers.fetch.read.html.content.lines import KINDS, Block, Line

LANDMARK_TAGS = ("header", "nav", "footer", "aside", "form")
LINK_SHARE = 0.5
"""Minimum share of links in a line that leads elsewhere."""
MAX_LABEL = 40
"""Maximum length of a line that begins with a button and is not a sentence, in characters."""
_MIN_PARAGRAPH = 80
"""Minimum length of a line that is a paragraph, in characters."""
PARAGRAPHS = ("p", "div")
_FURNITURE_KINDS = tuple(map(KINDS.index, ("nav", "footer", "toolbar", "dialog")))
_BUTTON = KINDS.index("button")


def is_furniture(line: Line) -> bool:
    """Return True if a line is in a landmark that never contains content."""
    return any(map(line.within.__getitem__, _FURNITURE_KINDS))


def is_in_landmark(line: Line, block: Block) -> bool:
    """Return True if a line is in a landmark inside the block that is around content."""
    around = line.block
    while around is not block and around.around is not None:
        if around.element.tag in LANDMARK_TAGS or around.element.get("role") == "navigation":
            return True
        around = around.around
    return False


def leads_away(line: Line, block: Block) -> bool:
    """Return True if a line in a block leads elsewhere: it is a link or a button, or is in a landmark around
    content."""
    is_button = line.within[_BUTTON] > 0 and len(line.text) <= MAX_LABEL
    return is_button or line.linked >= LINK_SHARE * len(line.text) or is_in_landmark(line, block)


def is_text_in(line: Line, around: Block | None) -> bool:
    """Return True if a line is a paragraph or a heading in a block."""
    block: Block | None = line.block
    while block is not None and block is not around:
        block = block.around
    is_text = is_heading(line) or len(line.text) >= _MIN_PARAGRAPH
    return block is not None and is_text and line.linked < LINK_SHARE * len(line.text)


def is_caption(line: Line) -> bool:
    """Return True if a line is in the caption of a figure."""
    block: Block | None = line.block
    while block is not None and block.element.tag in PARAGRAPHS:
        block = block.around
    return block is not None and block.element.tag == "figcaption"
