"""What can go wrong with a page, as one exception with a stable code.

`FetchError` is the only exception the domain lets out on purpose. Nothing in it repeats credentials, addresses of
the private network that a name led to, or paths of this machine.
"""

from typing import NamedTuple

__all__ = ["CODES", "Answered", "FetchError"]

CODES = {
    "bad_url": "what was given is no URL that can be fetched",
    "bad_argument": "an argument does not fit the page",
    "blocked_host": "the operator does not allow the host or the port",
    "blocked_address": "the host leads to an address that is not public",
    "dns": "the name of the host is not known, or the resolver failed",
    "connect": "the host can't be reached, or ended the connection",
    "tls": "the certificate is not valid for the host, or no safe connection was agreed on",
    "timeout": "it took longer than the limit",
    "too_large": "the answer is larger than the limit, as sent or unpacked",
    "too_many_redirects": "more redirects than the limit, or a circle",
    "bad_response": "the answer breaks the rules of HTTP, or of the encoding it names",
    "robots": "the site asks programs not to fetch this",
    "status": "the site answered with a status of 400 or more",
    "unsupported_type": "there is no text in it that could be shown",
    "unreadable": "the page is damaged, or costs more to read than the limit",
    "not_found": "the page has no such section",
    "busy": "too many pages are being fetched already",
}
"""Each code, and what it means."""


class Answered(NamedTuple):
    """What a site said when it did not give the page."""

    status: int
    retry_after: float | None = None
    """Seconds to wait, where the site named them."""
    excerpt: str = ""
    """The beginning of what stood in the answer, as text. Not to be trusted."""


class FetchError(Exception):
    """A refusal or failure: `code` for programs, `reason` and `suggestion` for readers.

    What a page or a site wrote stands in neither of them, but in `quoted` and `answered`: it is not to be trusted.
    """

    def __init__(
        self, code: str, reason: str, suggestion: str = "", answered: Answered | None = None, quoted: str = ""
    ) -> None:
        self.code = code
        self.reason = reason
        self.suggestion = suggestion
        self.answered = answered
        self.quoted = quoted
        super().__init__(code, reason, suggestion, answered, quoted)

    def __str__(self) -> str:
        return f"{self.reason}. {self.suggestion}" if self.suggestion else self.reason
