"""Converts a tree to Markdown or to plain text, block by block.

Blocks are strings of one or more lines. An element that contains blocks, such as a quote or a list item, puts its
prefix before each of their lines. A tree is at most a hundred levels deep (see `tree`), so functions may be
recursive.
"""

import re
from collections.abc import Callable

from lxml.html import HtmlElement, fragment_fromstring

from shared.text import code_block

from .blocks import code_text, is_data, language, write_rows, write_table
from .inline import Inline, code_span
from .markup.embedded import EMBEDDED
from .markup.footnotes import NOTE
from .markup.labels import separate_labels
from .tree import BLOCKS, HEADINGS, MAX_CAPTION_LENGTH, is_paragraph, length, squeeze

_BLOCK_BEGINNING = re.compile(
    r"^(?:#{1,6}(?=\s|$)|>|[-+*](?=\s|$)|~{3}|={2,}\s*$|-{2,}\s*$)|^(\d{1,9})(?=[.)](?:\s|$))"
)
_SPACES_AT_ENDS = re.compile(r" *\n *")
_BLANK_LINES = re.compile(r"\n{2,}")
_CODE = ("pre", "listing", "plaintext")
_LISTS = ("ul", "ol", "menu")
_OMITTED = ("select", "datalist", "optgroup", "option", "video", "audio", "head")


def write(element: HtmlElement, base: str, page: str, *, plain: bool = False) -> str:
    """Write an element as Markdown or, if `plain`, as text. `base` is the base URL of links, and `page` the URL of
    the page: links to places in the page itself become text."""
    separate_labels(element)
    return "\n\n".join(_Writer(element, Inline(base, page, plain=plain)).top_blocks(element))


class _Writer:
    def __init__(self, root: HtmlElement, inline: Inline) -> None:
        self.inline = inline
        self.plain = inline.plain
        self.block_parents = _find_block_parents(root)
        self.in_cell = False
        self.writers: dict[str, Callable[[HtmlElement], list[str]]] = {
            **dict.fromkeys(HEADINGS, self._heading),
            **dict.fromkeys(_CODE, self._code),
            **dict.fromkeys(_LISTS, self._list),
            **dict.fromkeys(_OMITTED, lambda _: []),
            **dict.fromkeys(("dt", "summary"), self._term),
            "blockquote": self._quote,
            "dd": self._definition,
            "figure": self._figure,
            "hr": lambda _: [] if self.plain or self.in_cell else ["---"],
            "li": lambda element: self._item(element, "- "),
            "table": self._table,
        }

    def top_blocks(self, element: HtmlElement) -> list[str]:
        """Return the blocks that an element is or contains."""
        if element.tag in BLOCKS or element in self.block_parents:
            return self._block(element)
        blocks: list[str] = []
        self._end_line([self.inline.element(element)], blocks)
        return blocks

    def blocks(self, element: HtmlElement) -> list[str]:
        """Return the blocks inside an element. Texts between them are blocks as well."""
        blocks: list[str] = []
        line = [self.inline.text(element.text)]
        for child in element:
            if child.tag in BLOCKS or child in self.block_parents:
                self._end_line(line, blocks)
                blocks += self._block(child)
                line = []
                line.append(self.inline.text(child.tail))
            else:
                self.inline.add(child, line)
        self._end_line(line, blocks)
        return blocks

    def _end_line(self, line: list[str], blocks: list[str]) -> None:
        text = _SPACES_AT_ENDS.sub("\n", re.sub(" {2,}", " ", "".join(line)).strip())
        paragraphs = filter(None, _BLANK_LINES.split(text.strip("\n")))
        blocks += paragraphs if self.plain else map(_escape_beginnings, paragraphs)

    def _block(self, element: HtmlElement) -> list[str]:
        tag = element.tag
        if (note := element.get(NOTE)) and tag != "li":
            return self._note(note, self._write(element))
        return self._write(element)

    def _write(self, element: HtmlElement) -> list[str]:
        tag = element.tag
        if tag in self.writers:
            return self.writers[tag](element)
        if tag == "a":
            # If a link contains blocks, as a card does, only its heading or its first text becomes the link.
            href = element.get("href")
            heading = next(element.iter(*HEADINGS), element) if href else element
            inner = (
                next((candidate for candidate in heading.iter() if squeeze(candidate.text)), None) if href else None
            )
            if inner is not None:
                link = fragment_fromstring("<a></a>")
                link.set("href", href)
                link.text, inner.text = inner.text, None
                inner.insert(0, link)
        return self.blocks(element)

    def _note(self, note: str, blocks: list[str]) -> list[str]:
        """Return a footnote, which begins with its marker, as one block."""
        return (
            [_prefix_lines("\n\n".join(blocks), f"[{note}] " if self.plain else f"[^{note}]: ", "    ")]
            if blocks
            else []
        )

    def _quote(self, element: HtmlElement) -> list[str]:
        blocks = self.blocks(element)
        return [_prefix_lines("\n\n".join(blocks), "> ", "> ")] if blocks and not self.plain else blocks

    def _term(self, element: HtmlElement) -> list[str]:
        blocks = self.blocks(element)
        # A heading, an item or a quote begins with its own markup, and can't be bold.
        is_word = len(blocks) == 1 and not blocks[0].startswith(("#", "- ", "> ")) and not set("\n*") & set(blocks[0])
        return [f"**{blocks[0]}**"] if is_word and not self.plain else blocks

    def _definition(self, element: HtmlElement) -> list[str]:
        blocks = self.blocks(element)
        return [_prefix_lines("\n\n".join(blocks), ": ", "  ")] if blocks else []

    def _figure(self, element: HtmlElement) -> list[str]:
        """Return the picture and the caption of a figure, if it contains nothing else; otherwise all its blocks."""
        pictures = [picture for picture in element.iter("img") if not picture.get(EMBEDDED)]
        captions = list(element.iter("figcaption"))
        words = sum(length(caption) for caption in captions)
        is_single_picture = (
            len(pictures) == 1 and len(captions) < 2 and length(element) <= words <= MAX_CAPTION_LENGTH
        )
        if not is_single_picture:
            return self.blocks(element)
        # The title of a picture can't contain a link, a footnote marker or a line break.
        is_plain = not captions or (
            is_paragraph(captions[0])
            and not any(
                inner.tag == "br" or inner.get(NOTE) is not None or (inner.tag == "a" and inner.get("href"))
                for inner in captions[0].iter()
            )
        )
        if not is_plain and captions[0] in pictures[0].iterancestors():
            return self.blocks(captions[0])
        caption = squeeze(captions[0].text_content()) if captions and is_plain else ""
        picture = self.inline.picture(pictures[0], caption)
        if not picture:
            return self.blocks(element)
        return [picture, *([] if is_plain else self.blocks(captions[0]))]

    def _heading(self, element: HtmlElement) -> list[str]:
        words = squeeze(
            " ".join(self.blocks(element)) if element in self.block_parents else self.inline.contents(element)
        )
        if not words:
            return []
        if self.plain or self.in_cell:
            return [words if self.plain or "*" in words else f"**{words}**"]
        return [f"{'#' * int(element.tag[1])} {words}"]

    def _code(self, element: HtmlElement) -> list[str]:
        code = code_text(element)
        if not code.strip() or self.plain:
            return [code] if code.strip() else []
        if self.in_cell:
            return ["\n".join(code_span(line) for line in code.split("\n") if line.strip())]
        return [code_block(code, language(element))]

    def _list(self, element: HtmlElement) -> list[str]:
        items: list[str] = []
        # A list that counts down ends at 1 if it has no `start`.
        step = 1 if element.get("reversed") is None else -1
        number = _number(element.get("start"), 1 if step > 0 else sum(child.tag == "li" for child in element))
        line = [self.inline.text(element.text)]
        for child in element:
            if child.tag not in BLOCKS and child not in self.block_parents:
                self.inline.add(child, line)
                continue
            items += self._write_between_items(line, "  " if items else "")
            line = [self.inline.text(child.tail)]
            if child.tag != "li":
                # For example a nested list outside an `li`.
                items += [_prefix_lines(block, "  ", "  ") for block in self._block(child)]
                continue
            number = _number(child.get("value"), number)
            item = self._item(child, f"{number}. " if element.tag == "ol" else "- ")
            items += item
            number += step if item and child.get(NOTE) is None else 0
        items += self._write_between_items(line, "  " if items else "")
        return ["\n".join(items)] if items else []

    def _write_between_items(self, line: list[str], margin: str) -> list[str]:
        """Return text between list items, which belongs to the previous item."""
        texts: list[str] = []
        self._end_line(line, texts)
        return [_prefix_lines(text, margin, margin) for text in texts]

    def _item(self, element: HtmlElement, marker: str) -> list[str]:
        blocks = self.blocks(element)
        if (note := element.get(NOTE)) and blocks:
            return self._note(note, blocks)
        if not blocks:
            return []
        text = blocks[0]
        for block in blocks[1:]:
            # There is no empty line before a nested list, since it would make the outer list loose (CommonMark).
            text += ("\n" if re.match(r"- |\d+\. ", block) else "\n\n") + block
        return [_prefix_lines(text, marker, " " * len(marker))]

    def _table(self, element: HtmlElement) -> list[str]:
        if not is_data(element):
            return self.blocks(element)
        caption = element.find("caption")
        blocks = self.blocks(caption) if caption is not None else []
        if self.in_cell:
            return [*blocks, write_rows(element, lambda cell: squeeze(" ".join(self.blocks(cell))))]
        return [*blocks, write_table(element, self._cell, plain=self.plain)]

    def _cell(self, element: HtmlElement) -> str:
        """Return the content of a cell on one line."""
        self.in_cell = True
        blocks = [re.sub(r"  \n", " ", block) for block in self.blocks(element)]
        self.in_cell = False
        if self.plain:
            return squeeze(" ".join(blocks))
        text = ""
        was_multiline = False
        for block in blocks:
            # A cell is on one line, so items and lines of code are separated by `<br>`.
            text += ("<br>" if was_multiline or "\n" in block else " ") if text else ""
            was_multiline = "\n" in block
            text += "<br>".join(line.strip() for line in block.split("\n") if line.strip())
        return text.replace("|", "\\|")


def _find_block_parents(root: HtmlElement) -> set[HtmlElement]:
    """Return the inline elements and headings that contain blocks."""
    block_parents: set[HtmlElement] = set()
    for element in root.iter(*BLOCKS):
        parent = element.getparent()
        while (
            parent is not None
            and parent not in block_parents
            and (parent.tag not in BLOCKS or parent.tag in HEADINGS)
        ):
            block_parents.add(parent)
            parent = parent.getparent()
    return block_parents


def _escape_beginnings(paragraph: str) -> str:
    """Escape the beginning of each line of a paragraph that would begin a block."""
    return "  \n".join(
        _BLOCK_BEGINNING.sub(lambda match: f"{match[1]}\\" if match[1] else f"\\{match[0]}", line)
        for line in paragraph.split("\n")
    )


def _prefix_lines(text: str, first: str, rest: str) -> str:
    lines = text.split("\n")
    return "\n".join([f"{first}{lines[0]}".rstrip(), *(f"{rest}{line}".rstrip() for line in lines[1:])])


def _number(text: str | None, default: int) -> int:
    return int(text) if text and re.fullmatch(r"\d{1,9}", text.strip()) else default
