"""Finds footnotes: the markers in a text, and the notes to which they refer.

A marker is a superscript number, letter or sign. Most markers are links to the note, and the note links back. Other
markers are not links, and the note begins with the same superscript. Markers and notes get the attribute `NOTE` in
the tree, and the writer turns them into `[^2]` and `[^2]: ...`. A superscript number after the end of a sentence is a
marker even if there is no note. After a unit or a variable it is an exponent.
"""

import re
from collections.abc import Iterator
from itertools import islice, takewhile

from lxml.etree import Element
from lxml.html import HtmlElement

from ..tree import BLOCKS, HEADINGS, drop, has_text, is_alone, length, names_in, squeeze

NOTE = "data-note"
"""The attribute with a footnote's label, on its marker and on the note."""
_LABEL = re.compile(
    r"\d{1,4}|[a-zA-Z]{1,2}|[ivxlcIVXLC]{1,6}|[*\u2020\u2021\u00a7\u00b6]{1,3}|(?:note|nb|n)[ \u00a0]?\d{1,3}"
)
_BRACKETS = "[]()\u00a0 "
_FOOTNOTE_ATTRIBUTE = re.compile(r"foot-?note|noteref|sdfootnote|endnote|reference", re.IGNORECASE)
_BACK_LINK_TEXT = re.compile(r"[\s\u21a9\ufe0e\ufe0f\u2191\u2912\u2934\u2303^\u21a5\u21b5\u2b06\u23ce()\[\].,;:]*")
_TEXINFO_MARKER = re.compile(r"\(\d{1,4}\)")
_LEADING = re.compile(r"[\s^\u2191]*")
_NOTE_ELEMENTS = BLOCKS - {*HEADINGS, "body", "main", "article", "table", "tbody", "tr", "td", "th", "ul", "ol", "dl"}
"""Elements that can be a note."""
_CONTAINERS = frozenset(("body", "main", "article", "section", "div"))
_MAX_NOTE = 5_000
"""Maximum length of a note, in characters."""
_MAX_MARKS = 5_000
"""Maximum number of linked markers on a page."""
_WRAPPERS = names_in("sup span b i em small cite")
_SENTENCE_END = re.compile(r"[.,;:!?\"\u201d\u2019\u00bb\u3002\u300d\u2026][*_`]*$")
_WORD_END = re.compile(r"[^\W\d_]{3,}[)\"\u201d\u2019]?$|\)$")


def mark_footnotes(root: HtmlElement) -> None:
    """Set the attribute `NOTE` of all footnotes of a page and of their markers, and remove the links back."""
    _mark_boxes(root)
    links = (link for link in root.iter("a") if (link.get("href") or "").startswith("#") and _label(link))
    if first := list(islice(links, _MAX_MARKS)):
        _mark_linked_notes(root, first)
    _mark_superscripts(root)


def _label(element: HtmlElement) -> str:
    """Return the text of a footnote marker without brackets, or "" if the element is not a marker."""
    # A marker has few children, so the text of larger elements need not be read.
    text = squeeze(element.text_content()).strip(_BRACKETS) if len(element) < 6 else ""
    return text.replace(" ", "-") if _LABEL.fullmatch(text) else ""


def _mark_linked_notes(root: HtmlElement, links: list[HtmlElement]) -> None:
    names = {link.get("href")[1:] for link in links}
    targets: dict[str, tuple[int, HtmlElement]] = {}
    order: dict[HtmlElement, int] = {}
    candidates = set(links)
    for number, element in enumerate(root.iter()):
        if element in candidates:
            order[element] = number
        for name in (element.get("id"), element.get("name") if element.tag == "a" else None):
            if name is not None and name in names:
                targets.setdefault(name, (number, element))
    marked = {f"#{name}" for link in links for name in _marker_names(link)}
    notes_by_name = {name: (number, _find_note(target, marked)) for name, (number, target) in targets.items()}
    links_in_notes = {
        note: {link.get("href") or "" for link in note.iter("a")}
        for _, note in notes_by_name.values()
        if note is not None
    }
    notes: dict[HtmlElement, list[HtmlElement]] = {}
    for link in links:
        number, note = notes_by_name.get(link.get("href")[1:], (0, None))
        if note is None or number < order[link] or note in link.iterancestors():
            continue
        if _is_raised(link) or any(f"#{name}" in links_in_notes[note] for name in _marker_names(link)):
            notes.setdefault(note, []).append(link)
    for note, marks in notes.items():
        label = _label(marks[0])
        _drop_links_back(note, {name for mark in marks for name in _marker_names(mark)}, label)
        if not has_text(note):
            continue
        note.set(NOTE, label)
        for mark in marks:
            _replace_marker(mark, label)


def _find_note(target: HtmlElement, marks: set[str]) -> HtmlElement | None:
    """Return the block that is or contains the `target` of a link; None if it can't be a note.

    `marks` contains the fragments of the markers, to which notes link back.
    """
    block = next((element for element in (target, *target.iterancestors()) if element.tag in BLOCKS), None)
    if block is not None and block.tag in HEADINGS and _TEXINFO_MARKER.fullmatch(squeeze(block.text_content())):
        # Texinfo repeats the marker in a heading before the note, in parentheses, unlike the number of a chapter.
        is_note = any(link.get("href") in marks for link in block.iter("a"))
        block = _join_following(block) if is_note else None
    if block is None or block.tag not in _NOTE_ELEMENTS or not 0 < length(block) <= _MAX_NOTE:
        return None
    return block


def _join_following(heading: HtmlElement) -> HtmlElement | None:
    """Put a heading that is only a marker into one element with the text up to the next heading, and return it; None
    if the text is too long."""
    blocks = [heading, *takewhile(lambda element: element.tag not in HEADINGS, heading.itersiblings())]
    if sum(map(length, blocks)) > _MAX_NOTE:
        return None
    note = Element("div")
    heading.addprevious(note)
    note.extend(blocks)
    heading.tag = "p"
    return note


def _is_raised(link: HtmlElement) -> bool:
    """Return True if a link is superscript, or its attributes identify it as a footnote marker."""
    if next(link.iterancestors("sup"), None) is not None or next(link.iter("sup"), None) is not None:
        return True
    attributes = " ".join(filter(None, map(link.get, ("class", "role", "epub:type", "rel"))))
    return _FOOTNOTE_ATTRIBUTE.search(attributes) is not None


def _marker_names(mark: HtmlElement) -> Iterator[str]:
    """Yield the ids and names of a marker, of its descendants, and of inline elements around it."""
    elements = [
        mark,
        *mark.iter(),
        *(ancestor for ancestor in list(mark.iterancestors())[:3] if ancestor.tag in _WRAPPERS),
    ]
    for element in elements:
        yield from filter(None, (element.get("id"), element.get("name")))


def _drop_links_back(note: HtmlElement, names: set[str], label: str) -> None:
    """Remove the links from a note back to its markers (`names` are their ids), and the label before its text."""
    for link in list(note.iter("a")):
        text = squeeze(link.text_content())
        to_mark = (link.get("href") or "").startswith("#") and link.get("href")[1:] in names
        if to_mark and (len(text) <= 3 or _BACK_LINK_TEXT.fullmatch(text) or text.strip(_BRACKETS + ".") == label):
            ancestor = link
            while ancestor.getparent() is not note and is_alone(ancestor) and ancestor.getparent().tag in _WRAPPERS:
                ancestor = ancestor.getparent()
            drop(ancestor)
    for element in note.iter():
        if element.tag == "sup" and _label(element) == label:
            drop(element)
            break
        if squeeze(element.text):
            text = element.text[_LEADING.match(element.text).end() :]  # type: ignore[union-attr]
            start = re.match(rf"[\[(]?{re.escape(label)}[\]).:]+\s*", text)
            element.text = text[start.end() :] if start else text
            break


def _replace_marker(mark: HtmlElement, label: str) -> None:
    """Replace the link of a marker, and elements that contain only this link, with a `sup` that has the label."""
    while is_alone(mark) and mark.getparent().tag in _WRAPPERS:
        mark = mark.getparent()
    sign = Element("sup", {NOTE: label})
    sign.text, sign.tail = label, mark.tail
    if mark.get("id"):
        sign.set("id", mark.get("id"))
    before = mark.getprevious()
    if before is not None and before.tail:
        # A marker directly follows its word, so remove the white space before it. If there is only white space, keep
        # it: it separates two elements.
        before.tail = before.tail.rstrip() or before.tail
    mark.getparent().replace(mark, sign)


# Marks that are not links


def _mark_boxes(root: HtmlElement) -> None:
    """Move notes that are in a box after their marker behind the block: LaTeXML shows the box next to the text. It
    begins with the marker again, once or several times."""
    last_notes: dict[HtmlElement, HtmlElement] = {}
    for sup in list(root.iter("sup")):
        box, label = sup.getnext(), _label(sup)
        first = next(box.iter("sup"), None) if box is not None and box.tag == "span" and not sup.tail else None
        if not label or first is None or _label(first) != label or not _is_at_beginning(box, first):
            continue
        for repeated in [element for element in box.iter("sup", "span") if squeeze(element.text_content()) == label]:
            drop(repeated)
        sup.set(NOTE, label)
        sup.tail, box.tail = box.tail, None
        sup.getparent().remove(box)
        # A box may only repeat the marker of another note, after the word "footnotemark:".
        if has_text(box) and not squeeze(box.text_content()).endswith(":"):
            box.tag = "div"
            box.set(NOTE, label)
            _put_behind(box, sup, last_notes)


def _put_behind(note: HtmlElement, sup: HtmlElement, last_notes: dict[HtmlElement, HtmlElement]) -> None:
    """Put a note behind the block of its marker and the notes there, or at the end of a `div` or the like."""
    block = next(ancestor for ancestor in sup.iterancestors() if ancestor.tag in BLOCKS)
    if block.tag in _CONTAINERS:
        block.append(note)
        return
    while block.getparent().tag not in _CONTAINERS:
        block = block.getparent()
    last_notes.get(block, block).addnext(note)
    last_notes[block] = note


def _mark_superscripts(root: HtmlElement) -> None:
    superscripts = [
        (sup, label) for sup in root.iter("sup") if not sup.get(NOTE) and not len(sup) and (label := _label(sup))
    ]
    if not superscripts:
        return
    notes: dict[str, tuple[HtmlElement, HtmlElement]] = {}
    marks: list[tuple[HtmlElement, str]] = []
    for sup, label in superscripts:
        block = next((ancestor for ancestor in sup.iterancestors() if ancestor.tag in BLOCKS), None)
        if block is not None and block.tag in _NOTE_ELEMENTS and _is_at_beginning(block, sup) and squeeze(sup.tail):
            notes[label] = block, sup
        else:
            marks.append((sup, label))
    used: set[str] = set()
    for sup, label in marks:
        sibling = sup.getprevious()
        text = sup.getparent().text if sibling is None else sibling.tail or "".join(sibling.itertext())
        before = (text or "").rstrip("\u00a0")[-20:]
        notes_by_name = label.isdigit() and (_SENTENCE_END.search(before) or squeeze(sup.text).startswith("["))
        if notes_by_name or (label in notes and _WORD_END.search(before)):
            sup.set(NOTE, label)
            used.add(label)
    for label in used & notes.keys():
        block, sup = notes[label]
        block.set(NOTE, label)
        drop(sup)


def _is_at_beginning(block: HtmlElement, sup: HtmlElement) -> bool:
    while sup is not block:
        if sup.getprevious() is not None or squeeze(sup.getparent().text):
            return False
        sup = sup.getparent()
    return True
