"""A document as it was read, and what can go wrong with one."""

from typing import NamedTuple

from shared.coded_errors import CodedError


class DocumentError(CodedError):
    """A file that can't be read, or has no such part: `unreadable`, `bad_argument` or `not_found`."""


class Facts(NamedTuple):
    """What a document says of itself; empty where it says nothing. Dates are in ISO 8601."""

    title: str = ""
    author: str = ""
    subject: str = ""
    language: str = ""
    created: str = ""
    modified: str = ""
