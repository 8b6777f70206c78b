"""Reads Markdown that a site sends. Returns it with absolute links, or returns a section, its links, or its metadata.

markdown-it-py finds its headings and links according to CommonMark, which ignores those in code blocks.
"""

import re
from contextlib import suppress
from itertools import pairwise, takewhile
from typing import Any, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

from shared.text import format_count

from ..errors import FetchError
from .page import Metadata, Page, Source, describe
from .text import decode

_MAX_LINKS = 1_000
"""Maximum number of links that are listed."""
_MAX_LINK_TEXT = 200
"""Maximum number of characters in a link's text."""
_MAX_SEARCHED = 2_000_000
"""Maximum number of characters searched for headings and links, and for the title."""
_BEGINNING_LENGTH = 20_000
"""Maximum number of characters searched for the title of a text that is returned unchanged."""
_MAX_LINKED_LENGTH = 300_000
"""Maximum characters of a text in which links are made absolute. markdown-it-py takes half a second for as many."""
_MAX_HEADINGS = 20
"""Maximum number of headings that an error quotes."""
_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_TITLE = re.compile(r"^title[ \t]*:[ \t]*(.+?)[ \t]*$", re.MULTILINE)
_ESCAPED = re.compile(r"[\\\[\]]")
_BACKSLASH = r"\\\g<0>"
_CODE_OR_TARGET = re.compile(
    r"(?<![`\\])(`++).{1,2000}?(?<!`)\1(?!`)"
    r"|(\]\(\s*|^ {0,3}\[[^\]\n]+\]:\s*)(<[^<>\n]*>|[^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)*)(?=[\s)]|$)",
    re.MULTILINE | re.DOTALL,
)
"""Matches a code span; or the target of a link, picture or link definition, with the text before the target."""
_NOT_IN_SLUG = re.compile(r"[^\w\- ]")


class Heading(NamedTuple):
    """A heading, its level, and the number of its first line."""

    words: str
    level: int
    line: int


def read_markdown(source: Source) -> Page:
    """Return the text with absolute links, a `section` of it, its links, or its metadata with an outline.

    Raises FetchError with code `not_found` for a missing section.
    """
    text, charset = decode(source.body, source.charset, source.kind.media_type)
    # Line endings are normalized, so that lines are counted as markdown-it counts them.
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    front = _FRONT_MATTER.match(text)
    before = text[: front.end()] if front else ""
    is_shown_whole = source.format in ("markdown", "text") and source.section is None
    limit = (
        (_BEGINNING_LENGTH if source.format == "text" else _MAX_LINKED_LENGTH) if is_shown_whole else _MAX_SEARCHED
    )
    references: dict[str, Any] = {}
    tokens = MarkdownIt("commonmark").parse(text[len(before) : limit], references)
    skipped = before.count("\n")
    headings = [
        Heading(
            " ".join("".join(child.content for child in inline.children or ()).split()),
            int(token.tag[1:]),
            token.map[0] + skipped,
        )
        for token, inline in pairwise(tokens)
        if token.type == "heading_open" and token.map is not None
    ]
    title_match = _TITLE.search(before)
    first_title = next((heading.words for heading in headings if heading.level == 1), "")
    metadata = Metadata(title=title_match[1].strip("\"'") if title_match else first_title)
    if source.format == "metadata":
        outline = [{"level": heading.level, "text": heading.words} for heading in headings]
        media_type = source.kind.media_type
        output = describe(
            kind="markdown", media_type=media_type, charset=charset, title=metadata.title, outline=outline
        )
        return Page(output, "markdown", charset, metadata)
    if source.section is not None:
        first, last = _find_section(headings, source.section)
        before, text = "", "\n".join(text.split("\n")[first:last]).rstrip()
        tokens = MarkdownIt("commonmark").parse(text, {"references": references.get("references", {})})
        references = {}
    if source.format == "links":
        output, omitted = _list_links(tokens, source.url)
        notes = (f"{format_count(omitted, 'more link')} left out.",) if omitted else ()
        return Page(output, "markdown", charset, metadata, notes=notes)
    if source.format == "markdown":
        text = before + _make_links_absolute(text[len(before) :], tokens, references, source.url)
    return Page(text, "markdown", charset, metadata)


def _find_section(headings: list[Heading], section: str) -> tuple[int, int | None]:
    """Return the number of a section's first line, which is its heading, and the number of the line after its last,
    or None for the end of the page. A section ends before the next heading of the same or a higher level."""
    query = section.strip()
    name = " ".join(query.lstrip("#").split()).casefold()
    # The section may be given as the fragment by which sites link to a heading, such as #getting-started.
    slug = unquote(query[1:]).casefold() if query.startswith("#") else ""
    for matches in (
        lambda heading: heading.words.casefold() == name,
        lambda heading: slug != "" and _NOT_IN_SLUG.sub("", heading.words.casefold()).replace(" ", "-") == slug,
        lambda heading: name != "" and name in heading.words.casefold(),
    ):
        index = next((number for number, heading in enumerate(headings) if matches(heading)), None)
        if index is not None:
            end = next((after.line for after in headings[index + 1 :] if after.level <= headings[index].level), None)
            return headings[index].line, end
    if not headings:
        raise FetchError("not_found", "The page has no such section, and no headings", "Leave `section` out")
    shown = "\n".join(heading.words[:100] for heading in headings[:_MAX_HEADINGS])
    suggestion = f"Name one of its {len(headings)} headings; the first are quoted"
    raise FetchError("not_found", "The page has no such section", suggestion, quoted=shown)


def _list_links(tokens: list[Token], url: str) -> tuple[str, int]:
    """Return one line for each linked URL, with the text of its first link, and the number of further URLs."""
    words: dict[str, str] = {}
    for token in tokens:
        children = token.children or []
        for index, child in enumerate(children):
            if child.type != "link_open":
                continue
            target = ""
            with suppress(ValueError):
                target = urljoin(url, str(child.attrs["href"]))
            # Other schemes, and links within the page, are left out.
            if target.startswith(("http://", "https://")) and urldefrag(target).url != url:
                inner = takewhile(lambda after: after.type != "link_close", children[index + 1 :])
                words.setdefault(
                    target, " ".join("".join(token_inside.content for token_inside in inner).split())[:_MAX_LINK_TEXT]
                )
    lines = [f"- [{_ESCAPED.sub(_BACKSLASH, text) or target}]({target})" for target, text in words.items()]
    return "\n".join(lines[:_MAX_LINKS]), max(len(lines) - _MAX_LINKS, 0)


def _make_links_absolute(text: str, tokens: list[Token], references: dict[str, Any], base: str) -> str:
    """Return a text in which the targets of links, pictures and definitions are absolute."""
    places = [token.map for token in tokens if token.type == "inline" and token.map is not None]
    places += [definition["map"] for definition in references.get("references", {}).values()]
    lines = text.split("\n")
    for first, end in places:
        part = "\n".join(lines[first:end])
        if "](" in part or "]:" in part:
            # Code spans are left unchanged.
            lines[first:end] = _CODE_OR_TARGET.sub(
                lambda match: match[0] if match[1] else match[2] + _make_target_absolute(base, match[3]), part
            ).split("\n")
    return "\n".join(lines)


def _make_target_absolute(base: str, link_target: str) -> str:
    """Return the target of a link, absolute if it is relative and not within the page."""
    target = link_target.removeprefix("<").removesuffix(">")
    try:
        is_relative = bool(target) and not target.startswith("#") and not urlsplit(target).scheme
        url = urljoin(base, target) if is_relative else target
    except ValueError:
        return link_target
    return f"<{url}>" if link_target.startswith("<") else url
