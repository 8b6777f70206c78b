"""Failures to fetch a page, as one exception with a stable code.

`FetchError` is the only exception that this package raises on purpose. It never contains credentials, private
addresses that a name resolved to, or paths on this machine. Its texts are single lines, so text from a site can't
imitate another line of an error.
"""

import re
from typing import NamedTuple

from shared.coded_errors import CodedError
from shared.text import join_lines

CODES = {
    "bad_url": "the URL can't be fetched",
    "bad_argument": "an argument does not fit the page",
    "blocked_host": "the operator does not allow the host or the port",
    "blocked_address": "the host resolves to an address that is not public",
    "dns": "the host name is unknown, or the resolver failed",
    "connect": "the host can't be reached, or ended the connection",
    "tls": "the certificate is not valid for the host, or no secure connection could be negotiated",
    "timeout": "it took longer than the limit",
    "too_large": "the response is larger than the limit, as sent or unpacked",
    "too_many_redirects": "more redirects than the limit, or a redirect loop",
    "bad_response": "the response breaks the rules of HTTP, or of the encoding it declares",
    "robots": "the site asks programs not to fetch this",
    "status": "the site returned a status of 400 or higher",
    "unsupported_type": "it has no text that could be shown",
    "unreadable": "the page is damaged, or takes more time or memory to read than allowed",
    "not_found": "the page has no such section, or none of the words",
    "busy": "too many pages are being fetched already",
}
"""Each code and its meaning."""
TRY_LATER = "Try again later, or another page."
"""The advice if a site is too slow."""
_ADVICE = {
    "connect": "Check the host and the port of the URL, or try again later.",
    "tls": "Check the host and the port of the URL, or fetch another page: certificates are always verified.",
}
"""The advice for codes that always have the same next step."""
GONE = frozenset({404, 410})
"""Status codes for a page that no longer exists."""


class ErrorResponse(NamedTuple):
    """A site's response with an error status."""

    status: int
    retry_after: float | None = None
    """Seconds to wait, if the site gives them."""
    excerpt: str = ""
    """The beginning of the response's text. Untrusted."""


class FetchError(CodedError):
    """A refusal or failure to fetch a page.

    The reason and the suggestion contain no words from a page or a site, which are untrusted, except for the host in
    a redirect and the type of a page, in quotes. All other words of a site are in the lines of `quoted` and in
    `response`.
    """

    def __init__(
        self, code: str, reason: str, suggestion: str = "", response: ErrorResponse | None = None, quoted: str = ""
    ) -> None:
        super().__init__(code, join_lines(reason), join_lines(suggestion or _ADVICE.get(code, "")))
        self.response = response
        self.quoted = "\n".join(map(join_lines, quoted.split("\n")))

    def replace_host(self, host: str, shown: str) -> "FetchError":
        """Return the same error with `shown` as its host."""
        name = re.compile(rf"(?<![\w.-]){re.escape(host)}(?![\w-])")
        reason, suggestion = (name.sub(shown, text) for text in (self.reason, self.suggestion))
        return FetchError(self.code, reason, suggestion, self.response, self.quoted)
