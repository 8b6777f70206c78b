"""Parses and normalizes the URLs to fetch."""

import re

from httpx import URL, InvalidURL

from ..errors import FetchError
from .hosts import bracket, normalize_host

MAX_URL = 16_384
"""Maximum length of a URL, before and after normalization."""

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):(//)?", re.IGNORECASE)
_PORT = re.compile(r"[0-9]{1,5}")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")


def parse_url(text: str) -> URL:
    """Return the parsed URL of a client or a redirect, including its fragment.

    The host is normalized (see `hosts`), so that the checked host is the one that is reached. Surrounding white space
    is stripped. Raises FetchError("bad_url") for schemes other than http and https, for userinfo, for a backslash
    before the path, which browsers read as a slash and others as part of the host, and for a malformed URL. Error
    messages never quote the URL.
    """
    scheme, rest = _split_scheme(text.strip())
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    host, port = _parse_authority(authority)
    try:
        url = URL(f"{scheme}://{bracket(host)}{port}{rest[len(authority) :]}")
    except InvalidURL:
        raise FetchError("bad_url", "the URL is not valid") from None
    if len(str(url)) > MAX_URL:
        raise _make_length_error()
    return url


def _split_scheme(text: str) -> tuple[str, str]:
    """Return the scheme, and the part after its slashes."""
    if len(text) > MAX_URL:
        raise _make_length_error()
    if _CONTROLS.search(text) or _SURROGATES.search(text):
        raise FetchError("bad_url", "the URL contains characters that are not allowed in a URL")
    match = _SCHEME.match(text)
    if match is None or (match[2] is None and "." in match[1]):  # as in `example.com:80`
        raise FetchError(
            "bad_url", "the URL is not valid", "Specify a complete URL, such as https://example.com/page"
        )
    scheme = match[1].lower()
    if scheme not in {"http", "https"}:
        raise FetchError("bad_url", "only http and https URLs can be fetched")
    if match[2] is None:
        raise FetchError("bad_url", "two slashes are missing after the scheme", f"Write {scheme}://HOST/...")
    return scheme, text[match.end() :]


def _make_length_error() -> FetchError:
    return FetchError("bad_url", f"the URL is longer than {MAX_URL} characters")


def _parse_authority(text: str) -> tuple[str, str]:
    """Return the normalized host, and the port with its colon if the URL contains it."""
    if "@" in text:
        raise FetchError(
            "bad_url",
            "the URL contains a user name or password, which is not sent",
            "Omit it; the operator can set a header for the host with --header",
        )
    end = text.rfind("]") + 1
    host, colon, port = text.rpartition(":") if ":" in text[end:] else (text, "", "")
    if port and (not _PORT.fullmatch(port) or not 0 < int(port) < 65_536):
        raise FetchError("bad_url", "the port is not a number from 1 to 65535")
    if ":" in host and not host.startswith("["):
        raise FetchError("bad_url", "the host contains a colon", "Enclose an IPv6 address in brackets")
    try:
        return normalize_host(host), colon + port if port else ""
    except ValueError as error:
        raise FetchError("bad_url", str(error)) from None


def host_of(url: URL) -> str:
    """Return the host in ASCII, without brackets for an IPv6 address."""
    return url.raw_host.decode("ascii")


def port_of(url: URL) -> int:
    """Return the port, or the scheme's default if the URL contains none."""
    return url.port or (443 if url.scheme == "https" else 80)
