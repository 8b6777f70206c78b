"""Describes the redirects that a browser would follow from a page after a delay, or because of a script.

Scripts are not run. An address is recognized if a script assigns a literal string, or a variable that holds one, to
`location`. The assignment may be in a function that is never called, so scripts are examined only if the page shows
hardly any text.
"""

import re
from urllib.parse import urldefrag

from lxml.html import HtmlElement

from servers.common.html.urls import absolute_url

_MAX_SHOWN = 1_000
"""Maximum number of characters of an address in a note."""
_MAX_SCRIPT = 20_000
"""Maximum length in characters of a script that only redirects."""
_URL_PREFIX = re.compile(r"^\s*url\s*=\s*", re.IGNORECASE)
_STRING = r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\$])*`"
_REDIRECT = re.compile(
    r"(?<![\w$.])(?:(?:window|self|top|parent|document|this)\s*\.\s*){0,3}location\s*"
    rf"(?:(?:\.\s*href\s*)?=(?!=)|\.\s*(?:replace|assign)\s*\()\s*({_STRING}|[\w$]+(?![\w$]))"
    r"(?!\s*\+(?!\s*(?:window\s*\.\s*|document\s*\.\s*)?location\s*\.\s*(?:hash|search)))"
)
"""A change of the address to a string or a variable. There is no match if the script appends anything except the
page's own query or fragment, since the address is then unknown."""
_VARIABLE = re.compile(rf"(?<![\w$.])([\w$]+)\s*=\s*({_STRING})\s*(?:[;,\n}}]|\Z)")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))", re.DOTALL)


def describe_refresh(root: HtmlElement, base: str, url: str) -> list[str]:
    """Return a note about the page to which a browser would be redirected after a delay; [] if there is none."""
    for meta in root.iter("meta"):
        if (meta.get("http-equiv") or "").strip().lower() == "refresh":
            delay, _, rest = (meta.get("content") or "").replace(",", ";", 1).partition(";")
            target = absolute_url(base, _URL_PREFIX.sub("", rest).strip(" \t\n'\""))
            if target and not _is_same(target, url) and delay.strip().isdecimal():
                return [
                    f'A browser would be redirected from here to "{target[:_MAX_SHOWN]}" after {int(delay[:9])} s.'
                ]
    return []


def describe_script_redirect(root: HtmlElement, base: str, url: str) -> list[str]:
    """Return a note about the page to which a script may redirect a browser; [] if there is none. The tree must still
    contain its scripts."""
    body = root.find("body")
    handler = "" if body is None else body.get("onload") or ""
    scripts = (element.text or "" for element in root.iter("script"))
    for script in (handler, *scripts):
        if len(script) > _MAX_SCRIPT or "location" not in script:
            continue
        strings = dict(_VARIABLE.findall(script))
        for match in _REDIRECT.finditer(script):
            literal = strings.get(match[1], "") if match[1][0] not in "\"'`" else match[1]
            address = absolute_url(base, _ESCAPE.sub(_decode_escape, literal[1:-1]))
            if address.startswith("http") and not _is_same(address, url):
                return [f'A script may redirect a browser from here to "{address[:_MAX_SHOWN]}".']
    return []


def _decode_escape(escape: re.Match[str]) -> str:
    number = escape[1] or escape[2]
    return chr(int(number, 16)) if number else escape[3]


def _is_same(target: str, url: str) -> bool:
    return urldefrag(target).url == urldefrag(url).url
