"""Reads an HTML page, from its bytes to the requested format."""

import html
import json
import re
from typing import NamedTuple

from lxml.etree import iterwalk
from lxml.html import HtmlElement

from servers.common.html.inline import escape
from servers.common.html.invisible import strip_invisible
from servers.common.html.tree import length, parse, squeeze
from servers.common.html.urls import base_url
from servers.common.html.visible import keep_visible
from servers.common.html.writer import write
from shared.text import format_count

from ...errors import FetchError
from ..page import Format, Page, RemovedCounts, Source
from ..text import decode
from .content.declarations import Declarations, combine_declarations
from .content.main_content import Content, main_content
from .deferred import expose_boundaries, place_deferred
from .emails import restore_emails
from .links import clean_markup, list_links
from .metadata import Facts, format_metadata, read_blocks, read_facts, read_linked_data
from .redirects import describe_refresh, describe_script_redirect
from .sections import find_section

_SCRIPTS_NOTE = "The page seems to need JavaScript to show its text, and scripts are not run here."
_DATA_NOTE = "The source contains its data: use the format `json`."
_LATE_NOTE = "Most of the page's text is hidden until a script shows it; it is included here."
_CUT_NOTE = "The page has too many elements or nesting levels; the rest is left out."
_ALL_TEXT_NOTE = "No main content was found, so this is all of the page's text."
_DESCRIPTION_NOTE = "The page shows hardly any text, so the description in its metadata is included."
_EMPTY_NOTE = "The page shows no text."
_MARKUP_NOTE = "The page shows hardly any text for its size: use `raw` to get its markup."
_LINES_OF_BEGINNING = 20
"""Number of lines at the beginning of the text that are searched for the title."""
_MAX_OMITTED_HEADINGS, _MAX_HEADING_LENGTH = 30, 100
"""Maximum number of omitted headings that are listed, and of characters of each."""
_MAX_UNSCRIPTED = 400
"""Maximum number of characters that a page shows without its scripts if it needs them."""
_MAX_EMPTY = 100
"""Maximum number of characters on a page that shows none of its content."""
_MIN_MARKUP = 10_000
"""Number of characters of markup that normally contain more than `_MAX_EMPTY` characters of text."""
_MIN_SCRIPTS = 2_000
"""Minimum number of characters of scripts that do more than count visits."""
_APP_ROOTS = frozenset(("root", "app", "__next", "__nuxt", "___gatsby", "svelte", "react-root", "q-app", "app-root"))
_INVISIBLE = frozenset(("script", "style", "noscript", "template"))
_CDATA = re.compile(
    r"<(script|style)\b[^<>]*(?<!/)>.*?(?:</\1>|\Z)|<!--.*?(?:-->|\Z)|<!\[CDATA\[(.*?)(?:\]\]>|\Z)", re.DOTALL
)
"""Matches a section of literal text (CDATA) in XHTML; also comments, scripts and styles, which may contain text that
looks like such a section."""
_ASKS_FOR_SCRIPTS = re.compile(r"java\s?script", re.IGNORECASE)


def read_html_page(source: Source) -> Page:
    """Return the page, like `read_html`. Raises the same errors."""
    text, charset = decode(source.body, source.charset, source.kind.media_type, source.url)
    if source.kind.media_type.endswith("xml"):
        # Sections of literal text are escaped, since the HTML parser would not recognize them.
        text = _CDATA.sub(lambda match: match[0] if match[2] is None else html.escape(match[2]), text)
    return read_html(text, source.url, source.format, source.section)._replace(charset=charset)


class VisiblePage(NamedTuple):
    """A page reduced to the parts that a reader sees."""

    root: HtmlElement
    url: str
    base: str
    """The base URL of the links."""
    facts: Facts
    declarations: Declarations
    removed: RemovedCounts
    is_late: bool
    """True if most of the text is only shown by a script."""


def read_html(text: str, url: str, format: Format, section: str | None) -> Page:
    """Return the text of a page in one format; with a `section`, all text of that section. Raises FetchError."""
    root, is_complete = parse(expose_boundaries(text))
    place_deferred(root)
    restore_emails(root, text)
    size = _count_visible(root)
    notes = [*([] if is_complete else [_CUT_NOTE]), *_describe_scripts(root, size, format)]
    base = base_url(root, url)
    notes += describe_refresh(root, base, url)
    notes += describe_script_redirect(root, base, url) if size < _MAX_UNSCRIPTED else []
    if format == "json":
        blocks, failed = read_blocks(find_section(root, section) if section else [root])
        if not blocks:
            suggestion = 'Ask for the format "markdown"'
            raise FetchError("not_found", "The page contains no JSON-LD and no other JSON", suggestion)
        notes += [f"{failed} more could not be read."] if failed else []
        written = strip_invisible(json.dumps(blocks, ensure_ascii=False, indent=2))[0]
        return Page(
            written,
            "html",
            metadata=read_facts(root, base, read_linked_data(root)).metadata,
            notes=tuple(notes),
        )
    page = prepare(root, url)
    notes += [_LATE_NOTE] if page.is_late else []
    parts = find_section(root, section) if section else None
    headings: tuple[str, ...] = ()
    if format in ("markdown", "text"):
        written, more, headings = _write_content(page, parts, plain=format == "text")
        if parts is None and (_SCRIPTS_NOTE in notes or len(written) + sum(map(len, headings)) < _MAX_EMPTY):
            described = _find_description(page, written, plain=format == "text")
            more += (
                [_DESCRIPTION_NOTE]
                if described
                else [_EMPTY_NOTE]
                if not written
                else [_MARKUP_NOTE]
                if len(text) > _MIN_MARKUP
                else []
            )
            written = "\n\n".join(filter(None, (written, described)))
        notes += more
    elif format == "links":
        written, omitted = list_links(parts or [root], base, url)
        notes += [f"{format_count(omitted, 'more link')} left out."] if omitted else []
    elif format == "metadata":
        written = format_metadata(page.facts, url, parts or [root])
    else:
        written = "\n".join(clean_markup(part, base) for part in parts or [root])
    facts = page.facts.metadata
    return Page(written, "html", "", facts, page.removed, tuple(notes), omitted_headings=headings)


def prepare(root: HtmlElement, url: str) -> VisiblePage:
    """Reduce a page to the parts that a reader sees."""
    base = base_url(root, url)
    things = read_linked_data(root)
    types = root.xpath("//@itemtype")
    cleared = keep_visible(root)
    facts = read_facts(root, base, things)
    declared = combine_declarations(facts.metadata.title, things, facts.open_graph, types)
    return VisiblePage(
        root, url, base, facts, declared, RemovedCounts(cleared.elements, cleared.characters), cleared.is_late
    )


def _write_content(
    page: VisiblePage, parts: list[HtmlElement] | None, *, plain: bool
) -> tuple[str, list[str], tuple[str, ...]]:
    """Return the text of `parts`, or of the main content, or all text if no main content was found; the notes; and
    the headings of the omitted text."""
    notes: list[str] = []
    if parts is not None:
        written = [write(part, page.base, page.url, plain=plain) for part in parts]
        return "\n\n".join(filter(None, written)), notes, ()
    content = main_content(page.root, page.declarations, pictures=not plain)
    if content is not None:
        body = content.body
        notes += _describe_omission(content)
    else:
        mains = [element for element in page.root.iter("main") if length(element)]
        body = mains[0] if len(mains) == 1 else page.root.find("body")
        notes += [] if body in mains else [_ALL_TEXT_NOTE]
    text = write(body, page.base, page.url, plain=plain)
    text = text if plain else _add_title(text, page.facts.heading)
    outline = content.outline[:_MAX_OMITTED_HEADINGS] if content is not None else []
    headings = tuple(heading[:_MAX_HEADING_LENGTH] for heading in outline)
    return text, (notes if text or content is not None else []), headings


def _find_description(page: VisiblePage, written: str, *, plain: bool) -> str:
    """Return the longest description in the page's metadata, if it is long enough to be a text of its own and longer
    than `written`."""
    text = max((page.facts.metadata.description, *page.declarations.descriptions), key=len)
    paragraphs = [squeeze(line) for line in text.splitlines() if line.strip()]
    # A shorter description only advertises the page. It is shown in the format `metadata`.
    if sum(map(len, paragraphs)) < max(_MAX_UNSCRIPTED, len(written)):
        return ""
    return "\n\n".join(paragraph if plain else escape(paragraph) for paragraph in paragraphs)


def _describe_omission(content: Content) -> list[str]:
    """Return a note about the omitted text of a page, if any."""
    omitted = sum(content.left.values())
    if not omitted:
        return []
    places = ", ".join(f"{place} {size:,}" for place, size in content.left.items())
    total = f"{content.kept + omitted:,} characters"
    if not content.is_small:
        return [f"Left out around the content: {omitted:,} of {total} ({places})."]
    return [f"Only {content.kept:,} of {total} are kept: use `raw` or `section` for the rest ({places})."]


def _add_title(text: str, heading: str) -> str:
    """Return `text` with `heading` before it, unless it begins with that heading or another title."""
    beginning = text.split("\n", _LINES_OF_BEGINNING)[:_LINES_OF_BEGINNING]
    title = _keep_letters(heading)
    headed = any(line.startswith("#") and _keep_letters(line) in title for line in beginning if _keep_letters(line))
    if not heading or headed or any(line.startswith("# ") or _keep_letters(line) == title for line in beginning):
        return text
    return f"# {escape(heading)}\n\n{text}".rstrip()


def _keep_letters(line: str) -> str:
    """Return only the letters of a line, for comparison."""
    return re.sub(r"\(https?:[^)]*\)|[\W_]+", "", line).casefold()


def _needs_scripts(root: HtmlElement, size: int) -> bool:
    """Return True if a page has hardly any text, but scripts to create it. The tree must still contain its scripts;
    `size` is its number of visible characters."""
    body = root.find("body")
    if body is None or size >= _MAX_UNSCRIPTED:
        return False
    scripts = list(root.iter("script"))
    asks = any(_ASKS_FOR_SCRIPTS.search(element.text_content()) for element in root.iter("noscript"))
    rooted = any((element.get("id") or element.tag) in _APP_ROOTS for element in body.iter("div", "main", "app-root"))
    written = sum(len(element.text or "") for element in scripts if "json" not in (element.get("type") or ""))
    loads = not size and any(element.get("src") for element in scripts)
    return bool(scripts) and (asks or rooted or loads or (size < _MAX_EMPTY and written > _MIN_SCRIPTS))


def _describe_scripts(root: HtmlElement, size: int, format: Format) -> list[str]:
    """Return notes about a page that needs its scripts; `size` is its number of visible characters."""
    if not _needs_scripts(root, size):
        return []
    return [_SCRIPTS_NOTE, *([_DATA_NOTE] if format != "json" and _has_data(root) else [])]


def _has_data(root: HtmlElement) -> bool:
    """Return True if a page contains the data from which its scripts create the text, such as `__NEXT_DATA__`."""
    return any(
        (script.get("type") or "").strip().lower() == "application/json" and len(script.text or "") >= _MIN_SCRIPTS
        for script in root.iter("script")
    )


def _count_visible(root: HtmlElement) -> int:
    """Return the number of characters that a page shows without its scripts."""
    body = root.find("body")
    size = 0
    walk = iterwalk(root if body is None else body, events=("start",))
    for _, element in walk:
        size += len((element.tail or "").strip())
        if element.tag in _INVISIBLE:
            walk.skip_subtree()
        else:
            size += len((element.text or "").strip())
        # Callers only compare the count with this maximum.
        if size >= _MAX_UNSCRIPTED:
            break
    return size
