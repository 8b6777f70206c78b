"""Shows the text in SVG drawings, and the links of image maps. Markdown has neither drawings nor maps.

The text of a drawing is written on one line, after the name of the drawing. Each area of an image map becomes a link
with the name of the area. Parts that browsers do not show, such as definitions and metadata, are left out.
"""

from collections.abc import Iterator

from lxml.etree import iterwalk
from lxml.html import HtmlElement

from ..tree import names_in, squeeze

_TEXTS = names_in("text foreignobject")
_HIDDEN = names_in("defs symbol clippath mask pattern marker title desc metadata style script")


def show_drawings(root: HtmlElement) -> None:
    """Replace each drawing that has text with the text, and each image map with its links."""
    for drawing in list(root.iter("svg")):
        texts = list(_texts(drawing))
        if texts:
            name = name_of_drawing(drawing)
            drawing[:] = []
            drawing.tag = "span"
            drawing.text = f"{name}: {', '.join(texts)}" if name else ", ".join(texts)
    for image_map in list(root.iter("map")):
        image_map.tag = "span"
        for area in image_map.iter("area"):
            name = squeeze(area.get("alt")) or squeeze(area.get("aria-label")) or squeeze(area.get("title"))
            if name and area.get("href"):
                area.tag, area.text, area.tail = "a", name, f" {area.tail or ''}"


def name_of_drawing(drawing: HtmlElement) -> str:
    """Return the accessible name of a drawing."""
    titles = (squeeze(title.text_content()) for title in drawing.iter("title"))
    return squeeze(drawing.get("aria-label")) or next(filter(None, titles), "") or squeeze(drawing.get("title"))


def _texts(drawing: HtmlElement) -> Iterator[str]:
    walk = iterwalk(drawing, events=("start",))
    for _, element in walk:
        if element.tag in _HIDDEN:
            walk.skip_subtree()
        elif element.tag in _TEXTS:
            walk.skip_subtree()
            if text := squeeze(element.text_content()):
                yield text
