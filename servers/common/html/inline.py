"""Writes text within a line, with escapes, emphasis and links.

Text of a page can't become markup: characters with a meaning in Markdown are escaped in text, and encoded in URLs
(see `urls`).
"""

import re
from urllib.parse import urldefrag

from lxml.html import HtmlElement

from .indices import write_script
from .markup.embedded import EMBEDDED
from .markup.footnotes import NOTE
from .markup.formulas import split_tex, tex_of
from .tree import names_in, squeeze
from .urls import absolute_url, picture_url

_SPACE = re.compile(r"[ \t\r\n\f\v\u00a0]+")
_SPECIAL_ANYWHERE = (
    r"\\(?=[!-/:-@\[-`{-~]|$)|`|(?<!\s)\*|\*(?!\s)|(?<!\w)_|_(?!\w)|<(?=[a-zA-Z/!?]|$)|&(?=#?\w+;)|~(?=~)"
)
_SPECIAL = re.compile(_SPECIAL_ANYWHERE + r"|\](?=[(\[:]|$)")
_SPECIAL_IN_LABELS = re.compile(_SPECIAL_ANYWHERE + r"|[\[\]]")
_PERMALINKS = frozenset(("", "#", "¶", "§", "🔗", "⚓", "link"))
_EMPHASIS = {
    **dict.fromkeys(("b", "strong"), "**"),
    **dict.fromkeys(("i", "em", "cite", "dfn"), "*"),
    **dict.fromkeys(("del", "s", "strike"), "~~"),
}
_SCRIPTS = {"sup": "^", "sub": "_"}
_MAX_DISTANCE = 40
"""The base of an exponent or an index is searched in this many characters before it, and only in the last pieces of
the line, at most as many."""
_CODE = frozenset(("code", "kbd", "samp", "tt"))
_OMITTED = names_in("""
    script style template noscript head title meta link svg object embed iframe canvas map area audio video
    source select textarea datalist rp
""")


def escape(text: str) -> str:
    """Escape text so that nothing in it is markup. Markup at the beginning of a line is not escaped (see `writer`),
    and TeX stays unchanged."""
    return split_tex(text, lambda part: _SPECIAL.sub(r"\\\g<0>", part))


def escape_label(text: str) -> str:
    """Escape text for use in a link's brackets."""
    return _SPECIAL_IN_LABELS.sub(r"\\\g<0>", text)


def code_span(code: str) -> str:
    """Write inline code. `code` must not be empty."""
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * (longest + 1)
    padding = " " if code[0] == "`" or code[-1] == "`" else ""
    return f"{fence}{padding}{code}{padding}{fence}"


class Inline:
    """Writes the content of a line as Markdown or, if `plain`, without any markup. `base` is the base URL of links,
    and `page` the URL of the page itself."""

    def __init__(self, base: str, page: str, *, plain: bool) -> None:
        self.base = base
        self.page = urldefrag(page).url
        self.plain = plain
        self._in_link = False

    def text(self, text: str | None) -> str:
        """Write text from the page. Each run of white space, including at the ends, becomes one space."""
        if not text:
            return ""
        text = _SPACE.sub(" ", text)
        if self.plain:
            return text
        return escape_label(text) if self._in_link else escape(text)

    def element(self, element: HtmlElement) -> str:
        """Write an element without its tail text."""
        tag = element.tag
        if tag == "br":
            return "\n"
        if tag in _OMITTED:
            return ""
        if tag == "img":
            return self._image(element)
        if tag in _CODE:
            code = squeeze(Inline(self.base, self.page, plain=True).contents(element))
            return code if self.plain or not code else code_span(code)
        if tag == "math":
            tex = tex_of(element)
            return tex if self.plain or not tex else f"${tex}$"
        if tag == "a" and not self.plain:
            return self._link(element)
        contents = self.contents(element)
        if tag == "q":
            return f'"{contents}"'
        if tag == "rt":
            return f"({contents.strip()})" if contents.strip() else ""
        if self.plain:
            return contents
        return _emphasize(contents, _EMPHASIS[tag]) if tag in _EMPHASIS else contents

    def contents(self, element: HtmlElement) -> str:
        """Write the content of an element."""
        parts = [self.text(element.text)]
        for child in element:
            self.add(child, parts)
        return "".join(parts)

    def add(self, child: HtmlElement, line: list[str]) -> None:
        """Append an element and its tail text to the pieces of a line."""
        tail = self.text(child.tail)
        if child.tag not in _SCRIPTS:
            line += self.element(child), tail
        elif note := child.get(NOTE):
            line += f"[{note}]" if self.plain else f"[^{note}]", tail
        else:
            next_sibling = child.getnext()
            after = tail
            if not tail and next_sibling is not None and next_sibling.tag not in _SCRIPTS:
                after = squeeze(next_sibling.text)
            before = "".join(line[-_MAX_DISTANCE:])[-_MAX_DISTANCE:]
            line += write_script(_SCRIPTS[child.tag], self.contents(child), before, after), tail

    def picture(self, image: HtmlElement, caption: str) -> str:
        """Write a picture. Its caption, if any, becomes its title, or replaces a missing description."""
        url = "" if self.plain else picture_url(self.base, image)
        if not url:
            return ""
        description = squeeze(image.get("alt"))
        alt = escape_label(description or caption)
        quoted = re.sub(r'["\\]', r"\\\g<0>", caption)
        return (
            f'![{alt}]({url} "{quoted}")' if description and caption not in ("", description) else f"![{alt}]({url})"
        )

    def _image(self, element: HtmlElement) -> str:
        """Write a picture or a link to an embedded object, or only the description if there is no URL."""
        text = squeeze(element.get("alt"))
        if not text:
            return ""
        if address := element.get(EMBEDDED):
            url = absolute_url(self.base, address)
            return self.text(text) if self.plain or self._in_link or not url else f"[{escape_label(text)}]({url})"
        return self.picture(element, "") or ("" if self.plain or picture_url(self.base, element) else self.text(text))

    def _link(self, element: HtmlElement) -> str:
        was_in_link, self._in_link = self._in_link, True
        contents = self.contents(element)
        self._in_link = was_in_link
        text = contents.strip()
        url = absolute_url(self.base, element.get("href"))
        if urldefrag(url).url == self.page:
            return "" if text.replace("\\", "") in _PERMALINKS else contents
        if not text or not url or was_in_link:
            return contents
        before, after = contents[: len(contents) - len(contents.lstrip())], contents[len(contents.rstrip()) :]
        return f"{before and ' '}[{_SPACE.sub(' ', text)}]({url}){after and ' '}"


def _emphasize(contents: str, sign: str) -> str:
    """Put emphasis around text, but not around the spaces at its ends. Text of several lines gets none."""
    text = contents.strip()
    if not text or "\n" in text or text.startswith(sign[0]) or text.endswith(sign[0]):
        return contents
    before, after = contents[: len(contents) - len(contents.lstrip())], contents[len(contents.rstrip()) :]
    return f"{before}{sign}{text}{sign}{after}"
