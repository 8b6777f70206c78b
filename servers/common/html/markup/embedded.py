"""Replaces embedded frames, videos, sounds and other files of a page by links with their titles.

In the tree, each is first replaced by a picture (`img`) with its address in the attribute `EMBEDDED`, because the
choice of the main content keeps pictures next to it. The picture becomes a link when the content is written: in
Markdown by `inline.py`, in HTML by `make_link`. Pictures in `noscript` replace the placeholders of pictures that a
script would load. One-pixel frames are left as they are, since they only count visits.
"""

import re

from lxml.html import HtmlElement

from ..tree import drop, length, names_in, parse, squeeze

EMBEDDED = "data-embedded"
"""The attribute with the address of embedded content."""
_KINDS = {
    "iframe": "embedded page",
    "video": "video",
    "audio": "audio",
    "object": "embedded file",
    "embed": "embedded file",
}
_AMP_ELEMENTS = ("amp-img", "amp-iframe", "amp-video", "amp-audio")
"""Elements of AMP that have the same attributes as their HTML counterparts."""
_ADDRESS_ATTRIBUTES = ("src", "data", "data-src", "data-lazy-src", "data-litespeed-src")
_SCHEMES_WITHOUT_ADDRESS = ("about:", "javascript:", "data:", "blob:")
_MAX_TITLE = 300
"""Maximum number of characters of a title."""
_PIXEL = re.compile(r"(?:^|;)\s*(?:width|height)\s*:\s*[01](?:px)?\s*(?:!important\s*)?(?:;|$)", re.IGNORECASE)
_PLACEHOLDER_ATTRIBUTES = names_in("fallback placeholder")
"""Attributes of the children that AMP shows until an element is loaded, or if it can't be loaded."""
_SOURCES = ("source", "track")


def show_embedded(root: HtmlElement) -> None:
    """Replace each frame, video, sound and object by a picture that becomes a link, and each placeholder of a picture
    that a script would load by the picture."""
    for element in list(root.iter("embed", *_SOURCES)):
        _move_children_behind(element)
    for element in list(root.iter(*_AMP_ELEMENTS)):
        element.tag = element.tag.removeprefix("amp-")
        for child in list(element):
            if child.tag == "noscript" or not _PLACEHOLDER_ATTRIBUTES.isdisjoint(child.keys()):
                # `drop` also adds a space, which is needed only if there is text after the child.
                (drop if child.tail else element.remove)(child)
        # If the end tag is missing, the parser has put the text that follows into the element.
        _move_children_behind(element, allowed=_SOURCES)
    for element in list(root.iter("noscript")):
        _replace_lazy_picture(element)
    for element in list(root.iter(*_KINDS)):
        if element.getparent() is None or _is_pixel(element):
            continue
        sources = [element.get(name) for name in _ADDRESS_ATTRIBUTES]
        sources += [source.get("src") for source in element.iter("source")]
        sources += [part.get("value") for part in element.iter("param") if part.get("name") in ("movie", "src")]
        addresses = (squeeze(source) for source in sources if source)
        address = next(
            (address for address in addresses if not address.lower().startswith(_SCHEMES_WITHOUT_ADDRESS)), ""
        )
        if address:
            _replace_with_picture(element, address)
        elif element.get("srcdoc"):
            body = parse(element.get("srcdoc"))[0].find("body")
            element.attrib.pop("srcdoc")
            element.tag, element.text = "div", body.text
            element[:] = list(body)
        elif element.tag == "object" and not element.get("data"):
            # Browsers show the content of an object without a file.
            element.tag = "div"


def make_link(element: HtmlElement) -> None:
    """Turn the picture that replaced embedded content into a link."""
    address, words = element.get(EMBEDDED), element.get("alt")
    element.attrib.clear()
    element.tag, element.text = "a", words
    element.set("href", address)


def _move_children_behind(element: HtmlElement, allowed: tuple[str, ...] = ()) -> None:
    """Move the text and the children of an element behind it, except for children with `allowed` tags. The parser has
    put them into the element by mistake."""
    element.tail, element.text = (element.text or "") + (element.tail or ""), None
    for child in reversed(element):
        if child.tag not in allowed:
            element.addnext(child)


def _replace_with_picture(element: HtmlElement, address: str) -> None:
    names = [element.get("title"), element.get("aria-label"), element.get("alt")]
    if element.tag == "object" and length(element) <= _MAX_TITLE:
        names.append(element.text_content())
    title = next(filter(None, map(squeeze, names)), _KINDS[element.tag])
    for inner in list(element):
        element.remove(inner)
    element.text = None
    element.tag = "img"
    for name in (*_ADDRESS_ATTRIBUTES, "srcset", "width", "height"):
        element.attrib.pop(name, None)
    element.set(EMBEDDED, address)
    element.set("alt", title[:_MAX_TITLE])


def _is_pixel(element: HtmlElement) -> bool:
    sizes = (element.get("width"), element.get("height"))
    return any((size or "").strip().removesuffix("px") in ("0", "1") for size in sizes) or bool(
        _PIXEL.search(element.get("style") or "")
    )


def _replace_lazy_picture(element: HtmlElement) -> None:
    """Replace the placeholder of a picture that a script would load by the picture in the `noscript` after it."""
    pictures = list(element.iter("img"))
    parent = element.getparent()
    if parent is None or len(pictures) != 1 or length(element) or _is_pixel(pictures[0]):
        return
    picture = pictures[0]
    previous = element.getprevious()
    lazy = next((image for image in previous.iter("img")), None) if previous is not None else None
    if lazy is not None and not squeeze(previous.tail):
        sources = [lazy.get(name) or "" for name in ("src", "data-src", "data-original", "data-lazy-src", "srcset")]
        # Keep the picture before the `noscript` if it needs no script, unless only the other one has a description.
        if any(source and not source.startswith("data:") for source in sources) and bool(
            lazy.get("alt") or not picture.get("alt")
        ):
            return
        picture.set("alt", picture.get("alt") or lazy.get("alt") or "")
        drop(lazy)
    picture.tail = None
    element.addprevious(picture)
