"""The challenges with which a server refuses a request, from the `WWW-Authenticate` header (RFC 9110, section
11.6.1)."""

import re
from collections.abc import Mapping

from ...protocol.records import record

MAX_HEADER_LENGTH = 16_384
"""Maximum number of characters of the header that are parsed; the rest is ignored."""
_WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_UNQUOTED = r'[^\s,"=][^\s,"]*'
"""A value without quotes. It may have any visible character, because some servers do not quote the URL of their
metadata."""
_PARAMETER = re.compile(rf'({_WORD})[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|({_UNQUOTED}))(?=[ \t]*(?:,|$))')
_SCHEME = re.compile(rf"({_WORD})(?:[ \t]+|(?=[ \t]*(?:,|$)))")
_TOKEN68 = re.compile(r"[A-Za-z0-9._~+/-]+=*(?=[ \t]*(?:,|$))")
_SEPARATOR = re.compile(r"[ \t,]*")
_PREFERRED_SCHEMES = ("dpop", "bearer")
"""The schemes that OAuth can answer, best first. A token bound to a key is preferred, since a thief can't use it."""


@record
class Challenge:
    """One challenge of a server: a scheme and its parameters. Scheme and parameter names are in lower case."""

    scheme: str
    parameters: Mapping[str, str]

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes that the server requires; empty if the challenge names none."""
        return tuple(self.parameters.get("scope", "").split())


def parse_challenges(header: str | None) -> tuple[Challenge, ...]:
    """Parse the challenges in one or several headers joined by commas. Parsing stops at the first text that is not a
    challenge; the challenges before it are returned."""
    text, position = (header or "")[:MAX_HEADER_LENGTH], 0
    challenges: list[Challenge] = []
    while True:
        position = _skip(_SEPARATOR, text, position)
        parameter = _PARAMETER.match(text, position)
        if parameter and challenges:
            name, quoted, token = parameter.groups()
            value = token if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
            challenge = challenges[-1]
            if isinstance(challenge.parameters, dict):
                # If a parameter is repeated, the first counts: it may occur only once in a challenge (RFC 9110,
                # section 11.2).
                challenge.parameters.setdefault(name.lower(), value)
            position = parameter.end()
        elif scheme := _SCHEME.match(text, position):
            challenges.append(Challenge(scheme[1].lower(), {}))
            position = scheme.end()
            # A scheme may have one value without a name instead of parameters, which is skipped.
            if not _PARAMETER.match(text, position):
                position = _skip(_TOKEN68, text, position)
        else:
            return tuple(challenges)


def _skip(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match else position


def pick_challenge(header: str | None) -> Challenge | None:
    """Return the challenge that OAuth should answer; None if it can answer none."""
    challenges = parse_challenges(header)
    for scheme in _PREFERRED_SCHEMES:
        for challenge in challenges:
            if challenge.scheme == scheme:
                return challenge
    return None
