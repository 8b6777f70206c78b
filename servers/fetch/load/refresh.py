"""Finds the target of an immediate `<meta http-equiv="refresh">`, or of a `Refresh` header.

The steps are those in the standard (https://html.spec.whatwg.org/#shared-declarative-refresh-steps). Two kinds of
refresh are ignored: inside `noscript`, it is for browsers without scripts; from a page to itself, it only reloads the
page.
"""

import re
from collections.abc import Mapping
from html import unescape
from urllib.parse import urldefrag, urljoin

from ..read.charsets import read_start

_SEARCHED_BYTES = 16_384
"""Number of bytes of a page that are searched for a refresh."""
_HTML_TYPES = frozenset(("text/html", "application/xhtml+xml"))
_SKIPPED = re.compile(
    rb"<!--.*?(?:-->|\Z)|<(noscript|script|style|template|textarea|title)\b.*?(?:</\1\s*>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_META = re.compile(rb"<meta\s[^>]*?http-equiv\s*=\s*[\"']?\s*refresh\b[^>]*", re.IGNORECASE)
_BASE = re.compile(rb"<base\s[^>]*?href\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>]+))", re.IGNORECASE)
_CONTENT = re.compile(rb"\scontent\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>]+))", re.IGNORECASE)
_REFRESH = re.compile(r"\s*(\d+|(?=\.))(?:\.[\d.]*)?\s*[;,\s]\s*(?:url\s*=\s*)?(.*)", re.IGNORECASE | re.DOTALL)


def find_refresh_target(url: str, media_type: str, headers: Mapping[str, str], body: bytes) -> str | None:
    """Return the URL to which the page at `url` leads immediately; None if it has no refresh, waits first, or
    refreshes to itself."""
    target = _parse_target(headers.get("refresh", ""), url)
    # UTF-16 takes twice as many bytes, every second of which is 0.
    if (
        target is None
        and media_type in _HTML_TYPES
        and b"refresh" in body[: 2 * _SEARCHED_BYTES].replace(b"\0", b"").lower()
    ):
        start = _SKIPPED.sub(b" ", read_start(body, _SEARCHED_BYTES))
        base = _BASE.search(start)
        base_url = urljoin(url, _decode_value(base)) if base else url
        contents = filter(None, (_CONTENT.search(meta[0]) for meta in _META.finditer(start)))
        targets = (_parse_target(_decode_value(content), base_url) for content in contents)
        target = next(filter(None, targets), None)
    return None if target is None or urldefrag(target).url == url else target


def _decode_value(match: re.Match[bytes]) -> str:
    value = next((group for group in match.groups() if group is not None), b"")
    return unescape(value.decode("utf-8", "replace"))


def _parse_target(content: str, base: str) -> str | None:
    match = _REFRESH.fullmatch(content)
    if match is None or int(match[1][:9] or 0) > 0:
        return None
    address = match[2].strip()
    if address[:1] in ("'", '"'):
        address = address[1:].partition(address[0])[0]
    try:
        return urljoin(base, address) if address else None
    except ValueError:
        return None
