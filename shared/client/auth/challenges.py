"""What a server says to whom it refuses: the challenges of `WWW-Authenticate` (RFC 9110, section 11.6.1)."""

import re
from collections.abc import Mapping

from ...protocol.records import record

MAX_HEADER = 16_384
_WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PARAMETER = re.compile(rf'({_WORD})[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|({_WORD}))(?=[ \t]*(?:,|$))')
_SCHEME = re.compile(rf"({_WORD})(?:[ \t]+|(?=[ \t]*(?:,|$)))")
_TOKEN68 = re.compile(r"[A-Za-z0-9._~+/-]+=*(?=[ \t]*(?:,|$))")
_SEPARATOR = re.compile(r"[ \t,]*")
_SCHEMES = ("dpop", "bearer")


@record
class Challenge:
    """One way in that a server names: a scheme, in small letters, and its parameters, whose names are so too."""

    scheme: str
    parameters: Mapping[str, str]

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes that are asked for; none where it does not say."""
        return tuple(self.parameters.get("scope", "").split())


def parse_challenges(header: str | None) -> tuple[Challenge, ...]:
    """The challenges in one or several headers, which stand with commas between them. What is no challenge ends
    them: what came before it counts."""
    text, at = (header or "")[:MAX_HEADER], 0
    found: list[Challenge] = []
    while True:
        at = _after(_SEPARATOR, text, at)
        parameter = _PARAMETER.match(text, at)
        if parameter and found:
            name, quoted, plain = parameter.groups()
            value = plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
            challenge = found[-1]
            if isinstance(challenge.parameters, dict):
                # The first of two counts: a parameter may come once in a challenge (RFC 9110, section 11.2).
                challenge.parameters.setdefault(name.lower(), value)
            at = parameter.end()
        elif scheme := _SCHEME.match(text, at):
            found.append(Challenge(scheme[1].lower(), {}))
            at = scheme.end()
            # Other schemes may have one value without a name, which says nothing to us.
            if not _PARAMETER.match(text, at):
                at = _after(_TOKEN68, text, at) if text[at : at + 1] not in ("", ",") else at
        else:
            return tuple(found)


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    matched = pattern.match(text, at)
    return matched.end() if matched else at


def pick_challenge(header: str | None) -> Challenge | None:
    """The challenge that OAuth answers, the one with the stronger proof first; None where there is none."""
    found = parse_challenges(header)
    for scheme in _SCHEMES:
        for challenge in found:
            if challenge.scheme == scheme:
                return challenge
    return None
